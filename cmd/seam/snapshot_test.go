package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hello is a dump whose thread 3685 stands in a reverse P/Invoke.
const hello = "../../testdata/dumps/net10-hello/core.zst"

// TestSnapshotCommand replays calls that flags and requests ask for, right ones and
// wrong ones.
func TestSnapshotCommand(t *testing.T) {
	core, err := filepath.Abs(hello)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	requests := strings.Join([]string{
		`{"walk": "plain", "os_tid": 3685, "flags": 1, "mode": "suspended", "seed": null}`,
		`{"walk": "flags", "os_tid": 3685, "flags": 4, "mode": "suspended", "seed": null}`,
		`{"walk": "abort", "os_tid": 3685, "flags": 0, "mode": "self", "seed": null, "abort_after": 2}`,
		`{"walk": "ignored", "os_tid": 3685, "flags": 0, "mode": "suspended", "seed": "00", "context_size": 1}`,
		``,
	}, "\n")
	for name, text := range map[string]string{
		"requests": requests,
		"gone":     requests + `{"walk": "gone", "os_tid": 1, "mode": "self"}` + "\n" + `{"walk": "after", "os_tid": 3685, "mode": "self"}`,
		"broken":   requests + "{",
		"nomode":   `{"os_tid": 3685, "mode": "upright"}`,
		"nothex":   `{"os_tid": 3685, "seed": "xy"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   string
		status int
		stdout []string // what is in it
		stderr string
	}{
		{"snapshot CORE --thread 3685", 0, []string{"Program.Park()", "[native frames", "0x00000000 S_OK after 7 callbacks (suspended, no seed)"}, ""},
		{"snapshot CORE --thread 3685 --abort-after 2 --mode self", 0, []string{"CORPROF_E_STACKSNAPSHOT_ABORTED after 2 callbacks"}, ""},
		{"snapshot CORE --thread 3685 --flags 8", 0, []string{"0x80070057 E_INVALIDARG after 0 callbacks"}, ""},
		{"snapshot CORE --thread 3685 --mode os-suspended", 0, []string{"0x80004001 E_NOTIMPL"}, ""},
		{"snapshot CORE --thread 3685 --seed auto --format jsonl", 0, []string{`"seed": "given"`, `"ctx_size": 3232`, `"hr": "0x00000000"`}, ""},
		{"snapshot CORE --format jsonl --requests requests", 0, []string{`"walk": "plain"`, `"hr": "0x80070057"`, `"hr": "0x80131361"`, `"walk": "ignored"`}, ""},
		{"snapshot CORE --format jsonl --requests gone", 1, []string{`"error": "the dump has no thread 1"`, `"walk": "after"`}, "no thread 1"},
		{"snapshot CORE --format jsonl --requests broken", 1, []string{`"walk": "plain"`}, "line 5"},
		{"snapshot CORE --requests nomode", 1, nil, "upright"},
		{"snapshot CORE --requests nothex", 1, nil, "line 1"},
		{"snapshot CORE --requests absent", 1, nil, "absent"},
		{"snapshot CORE --mode upright", 2, nil, "upright"},
		{"snapshot CORE --format xml", 2, nil, "xml"},
		{"snapshot CORE --seed zz", 1, nil, "neither hex nor a file"},
		{"seed CORE --thread 3685", 0, []string{"seed: pc 0x00007f822549c201", "preemptive mode", "finds another: pc 0x00007f8225497b75"}, ""},
		{"seed CORE --thread 3685 --check 00", 1, nil, "too short"},
		{"seed CORE --hazards", 0, []string{"No guideline of asynchronous walks is seen broken."}, ""},
		{"seed CORE --thread 77", 1, nil, "no such thread"},
	} {
		args := strings.Fields(strings.Replace(c.args, "CORE", core, 1))
		status, stdout, stderr := seam(t, dir, nil, nil, args...)
		if status != c.status || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: status %d, %q", c.args, status, stderr)
		}
		for _, want := range c.stdout {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%.2000s", c.args, want, stdout)
			}
		}
	}
}

// TestSeedJSON: --check finds the seed right that seam seed has computed, and wrong
// for another thread.
func TestSeedJSON(t *testing.T) {
	core, err := filepath.Abs(hello)
	if err != nil {
		t.Fatal(err)
	}
	type context struct{ PC, SP, FP, Ctx string }
	var found struct {
		Schema  int
		Threads []struct {
			TID        uint32
			Needed     bool
			HR         string
			Native     []struct{ PC, SP, By string }
			Seed       *context
			Documented any
			Verdict    *struct {
				HR      string
				Managed bool
				Same    bool `json:"same_as_computed"`
				Differs []string
				Text    string
			}
		}
		Hazards []any
	}
	ask := func(args ...string) {
		t.Helper()
		status, stdout, stderr := seam(t, t.TempDir(), nil, nil, append([]string{"seed", core, "--format", "json"}, args...)...)
		if status != 0 || json.Unmarshal([]byte(stdout), &found) != nil {
			t.Fatalf("status %d, %s\n%.500s", status, stderr, stdout)
		}
	}
	ask("--thread", "3685", "--hazards")
	if found.Schema != 1 || len(found.Threads) != 1 || found.Threads[0].Seed == nil || found.Threads[0].Needed || found.Hazards == nil {
		t.Fatalf("%+v", found)
	}
	seed := *found.Threads[0].Seed
	if len(seed.Ctx) != 2*1232 || len(found.Threads[0].Native) == 0 {
		t.Errorf("a CONTEXT of %d digits, %d native frames", len(seed.Ctx), len(found.Threads[0].Native))
	}
	ask("--thread", "3685", "--check", seed.Ctx)
	if v := found.Threads[0].Verdict; v == nil || v.HR != "0x00000000" || !v.Managed || !v.Same || len(v.Differs) != 0 {
		t.Errorf("%+v", v)
	}
	// With --strict a seed that is right for none of the threads asked for is exit
	// status 3.
	for _, c := range []struct {
		args   string
		status int
	}{{"--thread 3685", 0}, {"--thread 3690", 3}, {"--thread 3690 --thread 3685", 0}, {"", 0}} {
		args := append(strings.Fields("seed --strict --check "+seed.Ctx+" "+c.args), core)
		if status, stdout, stderr := seam(t, t.TempDir(), nil, nil, args...); status != c.status || !strings.Contains(stdout, "the seed given") {
			t.Errorf("--check --strict %s: status %d, %s", c.args, status, stderr)
		}
	}
	ask("--thread", "3690", "--check", seed.Ctx)
	if v := found.Threads[0].Verdict; v == nil || v.Same || !strings.Contains(v.Text, "another thread's seed") {
		t.Errorf("%+v", v)
	}
}
