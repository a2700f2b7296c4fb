package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs the scripts in testdata/script. $DUMPS is the folder of the
// dumps that ship with the tests. Beside testscript's own commands there are
//
//	status N seam ARG...     the program's exit status is N
//	head N SRC DST           DST are the first N bytes of SRC
func TestScript(t *testing.T) {
	dumps, err := filepath.Abs(filepath.Join("..", "..", "testdata", "dumps"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DUMPS", dumps)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": func(ts *testscript.TestScript, neg bool, args []string) {
				want, err := strconv.Atoi(args[0])
				if neg || err != nil {
					ts.Fatalf("usage: status N seam ARG...")
				}
				got := 0
				err = ts.Exec(args[1], args[2:]...)
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
					got = exit.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if got != want {
					ts.Fatalf("exit status %d, want %d", got, want)
				}
			},
			"head": func(ts *testscript.TestScript, neg bool, args []string) {
				n, err := strconv.Atoi(args[0])
				ts.Check(err)
				b, err := os.ReadFile(ts.MkAbs(args[1]))
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs(args[2]), b[:n], 0o666))
			},
		},
	})
}
