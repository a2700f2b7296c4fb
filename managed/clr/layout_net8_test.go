package clr

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/coreedit"
)

// tableWords returns the entries of a g_dacTable.
func tableWords(c *coreedit.Core, table arch.Addr, n int) []uint64 {
	words := make([]uint64, n)
	for k := range words {
		words[k], _ = c.Word(uint64(table) + 8*uint64(k))
	}
	return words
}

// setTable writes entries; those beyond them are 0.
func setTable(t *testing.T, c *coreedit.Core, table arch.Addr, n int, words []uint64) {
	t.Helper()
	for k := range n {
		v := uint64(0)
		if k < len(words) {
			v = words[k]
		}
		if err := c.SetWord(uint64(table)+8*uint64(k), v); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFirstBuildOfNet8 reads a dump of 8.0.31 with the g_dacTable of 8.0.0, which has
// 155 entries of the 157: one less before the 74th and one between the 85th and 91st.
func TestFirstBuildOfNet8(t *testing.T) {
	const name = "net8-scenarios-x64/normal"
	rts, warns := openEdited(t, name, nil)
	if len(rts) != 1 || len(warns) > 0 {
		t.Fatalf("%d runtimes, %v", len(rts), warns)
	}
	want := rts[0]
	if len(want.Lacks) > 0 || want.How != "table" {
		t.Errorf("by %s, lacking %v", want.How, want.Lacks)
	}
	for _, less := range [][]int{{74, 88}, {60, 86}, {0, 1}, {20, 90}} {
		rts, warns := openEdited(t, name, func(c *coreedit.Core, table arch.Addr, n int) {
			var words []uint64
			for k, v := range tableWords(c, table, n) {
				if k != less[0] && k != less[1] || k == 0 { // the first one is the map of code
					words = append(words, v)
				}
			}
			setTable(t, c, table, n, words)
		})
		if len(rts) != 1 || len(warns) > 0 {
			t.Errorf("without entries %v: %d runtimes, %v", less, len(rts), warns)
			continue
		}
		sameReading(t, fmt.Sprintf("without entries %v", less), rts[0], want)
	}
}

// TestTableThatDoesNotMatch: a g_dacTable that is another's leads to the same answers
// as the right one, or to none; Frames are of no kind rather than of a wrong one.
func TestTableThatDoesNotMatch(t *testing.T) {
	const name = "net8-scenarios-x64/normal"
	rts, warns := openEdited(t, name, nil)
	if len(rts) != 1 {
		t.Fatal(warns)
	}
	kinds := map[arch.Addr]FrameKind{}
	chains := func(r *Runtime, each func(f Frame)) {
		for _, th := range threadsOf(t, r) {
			for _, f := range framesOf(r, &th) {
				each(f)
			}
		}
	}
	chains(rts[0], func(f Frame) { kinds[f.Addr] = f.Kind })
	rnd := rand.New(rand.NewSource(8))
	read := 0
	for what, change := range map[string]func(words []uint64){
		"vtables in another order":   func(w []uint64) { rnd.Shuffle(60, func(i, j int) { w[97+i], w[97+j] = w[97+j], w[97+i] }) },
		"vtables one place off":      func(w []uint64) { copy(w[124:], w[123:156]) },
		"two classes changed":        func(w []uint64) { w[129], w[135] = w[135], w[129] },
		"variables in another order": func(w []uint64) { rnd.Shuffle(97, func(i, j int) { w[i], w[j] = w[j], w[i] }) },
		"all the same": func(w []uint64) {
			for k := range w {
				w[k] = w[0]
			}
		},
		"zeros": func(w []uint64) { clear(w) },
		"addresses of no image": func(w []uint64) {
			for k := range w {
				w[k] ^= 1 << 40
			}
		},
	} {
		rts, warns := openEdited(t, name, func(c *coreedit.Core, table arch.Addr, n int) {
			words := tableWords(c, table, n)
			change(words)
			setTable(t, c, table, n, words)
		})
		if len(rts) == 0 {
			if len(warns) != 1 {
				t.Errorf("%s: refused with %v", what, warns)
			}
			continue
		}
		read++
		wrong := 0
		chains(rts[0], func(f Frame) {
			if f.Kind != UnknownFrame && f.Kind != kinds[f.Addr] {
				wrong++
			}
		})
		t.Logf("%s: lacking %v, %d Frames of a wrong kind", what, rts[0].Lacks, wrong)
		if wrong > 0 {
			t.Errorf("%s: %d Frames are of a wrong kind", what, wrong)
		}
	}
	if read == 0 {
		t.Error("nothing was read with any of the tables")
	}
}

// TestHeld: the vtables of Frames are held against the Frames of the process. As the
// row has them they are borne out; one place off they are not, nor are two that are
// changed, and without a Frame only what is not moved is believed.
func TestHeld(t *testing.T) {
	rts, warns := openEdited(t, "net8-scenarios-x64/normal", nil)
	if len(rts) != 1 {
		t.Fatal(warns)
	}
	r := rts[0]
	classes, _, ok := r.table.frameClasses(0)
	if !ok || !r.table.held(classes, false) || !r.table.held(classes, true) {
		t.Errorf("the classes of the row are not borne out: %v", ok)
	}
	for _, by := range []int{-1, 1, 2} {
		if off, _, ok := r.table.frameClasses(by); ok && r.table.held(off, true) {
			t.Errorf("those %d places off are", by)
		}
	}
	if _, _, ok := r.table.frameClasses(1000); ok {
		t.Error("there are classes beyond the table")
	}
	a, b := classes["InlinedCallFrame"], classes["HelperMethodFrame"]
	classes["InlinedCallFrame"], classes["HelperMethodFrame"] = b, a
	if r.table.held(classes, false) {
		t.Error("two that are changed are borne out")
	}
}
