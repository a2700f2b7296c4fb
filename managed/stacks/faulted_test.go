package stacks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
)

// TestFaultInBarrier: a thread has faulted in a write barrier, which leaves a Frame
// that leads to the barrier's caller. The walk through the handler comes to the
// caller by its call, and knows where in its IL that is. With the handler's stack
// away only the Frame leads there, and cannot tell the call from what follows it.
func TestFaultInBarrier(t *testing.T) {
	path := corpus.Path(t, "net8-callbacks-x64", "dump.zst")
	at := spot{27233, arch.PC{Addr: 0x7f4b0e63a683}, 0x7f0a24fe5a60}
	whole, _ := tell(t, path, false)
	if p := whole.frames[at]; p == nil || p.Method.Name != "Program.WriteRef" || p.Method.ILOffset != 0 {
		t.Errorf("in the whole dump: %+v", p)
	}
	core, err := coreedit.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	core.Hole(0x7f0a24fe4000, 0x1000)
	path = filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, core.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	cut, _ := tell(t, path, false)
	at.pc.Exact = true
	if p := cut.frames[at]; p == nil || p.Method.Name != "Program.WriteRef" || p.Method.ILOffset != -1 {
		t.Errorf("by its Frame alone: %+v", p)
	}
}
