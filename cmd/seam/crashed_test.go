package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/internal/coreedit"
)

// TestCrashedFirst holds the order of threads where the one that the dump was made
// for is not the first of the dump: in a recorded dump its NT_SIGINFO, which
// belongs to the thread in front of it, is moved behind the second thread.
func TestCrashedFirst(t *testing.T) {
	core, err := coreedit.Read("../../testdata/dumps/net10-crash-unhandled/core.zst")
	if err != nil {
		t.Fatal(err)
	}
	const prstatus, siginfo, head = 1, 0x53494749, 20 // head: of a note, with its name
	var tids []uint32
	var sig, next []byte // the NT_SIGINFO and the NT_PRSTATUS behind it
	core.Notes(func(name string, typ uint32, desc []byte) bool {
		switch {
		case name == "CORE" && typ == siginfo && len(tids) == 1:
			sig = desc
		case name == "CORE" && typ == prstatus:
			if tids = append(tids, binary.LittleEndian.Uint32(desc[32:])); len(tids) == 2 {
				next = desc
			}
			clear(desc[12:14]) // pr_cursig, which says it as well
		}
		return true
	})
	data := core.Bytes()
	at, end := bytes.Index(data, sig)-head, bytes.Index(data, next)+len(next)
	if sig == nil || at < 0 || end-at != 2*head+len(sig)+len(next) {
		t.Fatalf("the dump's notes are others than they were: %d threads, %#x to %#x", len(tids), at, end)
	}
	copy(data[at:end], slices.Concat(data[end-head-len(next):end], data[at:at+head+len(sig)]))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "core"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat([]uint32{tids[1], tids[0]}, tids[2:])
	for _, command := range []string{"stacks", "info"} {
		_, out, errs := seam(t, dir, nil, nil, command, "--images", "none", "--format", "json", "core")
		var doc struct {
			Threads []struct {
				TID     uint32
				Crashed bool
			}
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%s: %v: %s", command, err, errs)
		}
		var got []uint32
		for i, th := range doc.Threads {
			if got = append(got, th.TID); th.Crashed != (i == 0) {
				t.Errorf("%s: thread %d: crashed is %v", command, th.TID, th.Crashed)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: threads %d, want %d", command, got, want)
		}
	}
}
