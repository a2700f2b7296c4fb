//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
)

// TestFullDisk: output that cannot be written is an error (exit status 1), whether
// the first byte cannot be written or only the last buffer.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	core, err := filepath.Abs(hello)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	incomplete := filepath.Join(t.TempDir(), "incomplete")
	if err := os.WriteFile(incomplete, makeCore([]uint32{100, 101}), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"stacks " + incomplete, "stacks --format json " + incomplete, "trim " + incomplete + " -",
		"stacks CORE", "stacks --format json CORE", "stacks --thread 3684 CORE", "stacks --as-profiler CORE", "stacks --as-profiler --format json CORE",
		"info CORE", "info --format json CORE", "methods CORE", "methods --format json CORE", "methods --format perfmap CORE", "methods --limit 1 CORE",
		"seed CORE", "seed --format json CORE", "seed --hazards CORE", "snapshot CORE", "snapshot --format jsonl CORE", "snapshot --thread 3684 CORE",
		"trim CORE -", "trim CORE " + filepath.Join(t.TempDir(), "out"),
	} {
		for _, strict := range []string{"", "--strict "} {
			noSpace(t, exe, full, strings.Replace(args, "CORE", core, 1)+" "+strict+"--images none")
		}
	}
	for _, args := range []string{"version", "version --format json", "--version", "completion bash", "completion fish"} {
		noSpace(t, exe, full, args)
	}
}

// noSpace runs the program with its standard output on a full disk: it must say
// that there is no space, and exit with 1.
func noSpace(t *testing.T, exe string, full *os.File, args string) {
	t.Helper()
	cmd := exec.Command(exe, strings.Fields(args)...)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &errs
	cmd.Env = append(os.Environ(), "SEAM_TEST_RUN=1", "SEAM_IMAGES=")
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errs.String(), "no space") {
		t.Errorf("%s: %v, %q", args, err, errs.String())
	}
}

// TestOneFile: --images takes a file, too, and finds the image that it is of by its
// identity, whatever the file's name.
func TestOneFile(t *testing.T) {
	dump := corpus.Path(t, filepath.Join("net10-hello-x64", "normal.zst"))
	named := func(places ...string) int {
		args := []string{"stacks", "--thread", "3684", "--images", "none"}
		for _, p := range places {
			args = append(args, "--images", p)
		}
		status, out, errs := seam(t, "", nil, nil, append(args, dump)...)
		if status != 0 {
			t.Fatalf("exit status %d: %s", status, errs)
		}
		return strings.Count(out, "libc.so.6")*100 + strings.Count(out, "clone3+")
	}
	images := corpus.Images(t)
	var libc string
	filepath.WalkDir(images, func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "libc.so.6" && named(path) != named() {
			libc = path
		}
		return nil
	})
	if libc == "" {
		t.Fatal("no libc.so.6 of the corpus names a frame")
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.Link(libc, other); err != nil {
		b, err := os.ReadFile(libc)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(other, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if named(other) != named(libc) {
		t.Error("renamed, it is not found")
	}
}
