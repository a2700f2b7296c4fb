//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal returns the two ends of a new pseudo-terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("needs pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skipf("needs pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// TestFoldedOnTerminals: runs of the same frames are shown once on a terminal, and
// all of them elsewhere, or where that is asked for.
func TestFoldedOnTerminals(t *testing.T) {
	const dump = "../../testdata/dumps/net10-crash-kernel/core.zst"
	run := func(out io.Writer, args ...string) {
		root, _ := newRoot()
		root.SetArgs(append([]string{"stacks", "--images", "none"}, append(args, dump)...))
		root.SetOut(out)
		if err := root.Execute(); err != nil {
			t.Error(err)
		}
	}
	const folded = "more times"
	for _, args := range [][]string{nil, {"--fold=false"}} {
		master, slave := terminal(t)
		var shown bytes.Buffer
		done := make(chan bool)
		go func() {
			io.Copy(&shown, master) // ends with an error once the other end is closed
			done <- true
		}()
		run(slave, args...)
		slave.Close()
		<-done
		if got := strings.Contains(shown.String(), folded); got != (args == nil) {
			t.Errorf("%v on a terminal: folded %v\n%s", args, got, shown.String())
		}
	}
	var shown bytes.Buffer
	run(&shown)
	if strings.Contains(shown.String(), folded) {
		t.Error("folded in a file")
	}
}
