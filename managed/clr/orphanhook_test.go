package clr

import (
	"encoding/binary"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/managed/code"
)

// TestHookedMethod finds the methods that call a profiler's enter hook by what they
// hand to it, as their headers have them. One that hands over another id, as a
// profiler with a mapping of its own has it, and none is believed.
func TestHookedMethod(t *testing.T) {
	for _, name := range []string{"net8-elt-fast-x64", "net10-elt-fast-x64"} {
		core, err := coreedit.Read(corpus.Path(t, name, "dump.zst"))
		if err != nil {
			t.Fatal(err)
		}
		fx := &fixture{t, core}
		r := fx.edited(nil)
		var last arch.Addr
		held, plain := 0, 0
		r.Compiled(func(m code.Compiled) bool {
			if m.Kind == code.CompiledStub || m.ID == 0 {
				return true
			}
			switch got := r.hookedMethod(m.Span.Lo); {
			case got == 0:
				plain++
			case got != m.ID:
				t.Errorf("%s: the method at %v is %v by its hook, %v by its header", name, m.Span.Lo, got, m.ID)
			default:
				if c, _ := r.CodeAt(m.Span.Lo); !r.Replay().hooked(&c) {
					t.Errorf("%s: %v calls no hook", name, m.Span.Lo)
				}
				if held++; last == 0 {
					last = m.Span.Lo
				}
			}
			return true
		})
		if t.Logf("%s: %d methods with hooks, %d without", name, held, plain); held < hookedLeast || plain == 0 {
			t.Fatalf("%s: too few", name)
		}
		id, _ := r.arch.EnterHook(r.mem, last)
		at, other := last, binary.LittleEndian.AppendUint64(nil, id)
		for b := r.mem.View(at, 8); string(b) != string(other); b = r.mem.View(at, 8) {
			at++
		}
		mapped := fx.edited(func(c *coreedit.Core) {
			if err := c.SetWord(uint64(at), id+8); err != nil {
				t.Fatal(err)
			}
		})
		if got := mapped.hookedMethod(last); got != 0 {
			t.Errorf("%s: with an id that is no MethodDesc the method is %v", name, got)
		}
	}
}
