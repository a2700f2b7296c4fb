package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
)

// TestSlotMethod finds each ordinary method that Modules define by the code in its
// slot, as the code's own header has it; without the MethodDesc there is none.
func TestSlotMethod(t *testing.T) {
	for _, name := range []string{"net9-transitions-x64", "net8-transitions-x64", "net10-seeds-x64"} {
		core, err := coreedit.Read(corpus.Path(t, name, "dump.zst"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { testSlotMethod(t, &fixture{t, core}) })
	}
}

func testSlotMethod(t *testing.T, fx *fixture) {
	r := fx.edited(nil)
	held, first := 0, [2]arch.Addr{}
	for md := range r.definitions() {
		start := r.nativeCode(r.mem, md)
		c, missing := r.CodeAt(start)
		if start == 0 || missing != 0 || c.Start != start {
			continue
		}
		if got := r.slotMethod(start); got != md || c.Method != md {
			t.Errorf("the code at %v is of %v by its slot, of %v by its header, want %v", start, got, c.Method, md)
		}
		if held++; first[0] == 0 {
			first = [2]arch.Addr{md, start}
		}
	}
	if t.Logf("%d methods", held); held < 10 {
		t.Fatal("too few methods have code in their slots")
	}
	if got := fx.without(field(first[0], r.names.MDFlags), 2).slotMethod(first[1]); got != 0 {
		t.Errorf("without its flags the method is %v", got)
	}
	if got := fx.edited(nil).slotMethod(0); got != 0 {
		t.Errorf("no code is that of %v", got)
	}
}
