package clr

import (
	"slices"
	"strings"
	"testing"
)

func TestParseContract(t *testing.T) {
	// Every shape that a shipped or documented descriptor has, comments and
	// trailing commas among them (docs/design/datacontracts/data_descriptor.md).
	const text = `{"version": 0, "baseline": "empty", // a comment
		"types": {
			"Thread": {"!": 640, "Id": 16, "GCHandle": [304, "GCHandle"], "LinkNext": ["0x70", "pointer"],},
			"Empty": {},
		},
		/* another, with "quotes" and , commas */
		"globals": {
			"Plain": 7, "Hex": "0xf", "Minus": "-0x1", "Text": ["x64, \"quoted\"", "string"],
			"Typed": ["0x10", "nuint"], "Indirect": [1], "IndirectTyped": [[2], "pointer"]
		},
		"contracts": {"Thread": 1, "ExecutionManager": "c2"}}`
	c, err := parseContract([]byte(text), []uint64{0, 0x1000, 0x2000})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"Thread.!": 640, "Thread.Id": 16, "Thread.GCHandle": 304, "Thread.LinkNext": 0x70} {
		if got, ok := c.offsets[name]; !ok || got != want {
			t.Errorf("%s = %d, %v, want %d", name, got, ok, want)
		}
	}
	for name, want := range map[string]uint64{"Plain": 7, "Hex": 15, "Minus": ^uint64(0), "Typed": 16} {
		if got, ok := c.global(name); !ok || got != want {
			t.Errorf("global %s = %#x, %v, want %#x", name, got, ok, want)
		}
	}
	for name, want := range map[string]uint64{"Indirect": 0x1000, "IndirectTyped": 0x2000} {
		if got, ok := c.pointer(name); !ok || uint64(got) != want {
			t.Errorf("pointer %s = %v, %v, want %#x", name, got, ok, want)
		}
	}
	if got := c.globals["Text"].text; got != `x64, "quoted"` {
		t.Errorf("text = %q", got)
	}
	if c.contracts["Thread"] != "1" || c.contracts["ExecutionManager"] != "c2" {
		t.Errorf("contracts = %v", c.contracts)
	}
	var l struct {
		ID       int `c:"Thread.Id"`
		Optional int `c:"Thread.NotThere,optional"`
		Size     int `c:"Thread.!"`
	}
	if lacks := c.fill(&l); lacks != nil || l.ID != 16 || l.Optional != -1 || l.Size != 640 {
		t.Errorf("fill: %+v, %v", l, lacks)
	}
	var missing struct {
		X int `c:"Thread.NotThere"`
	}
	if lacks := c.fill(&missing); len(lacks) != 1 || lacks[0] != "Thread.NotThere" || missing.X != nowhere {
		t.Errorf("a missing field is at %d; lacking is %v", missing.X, lacks)
	}
}

// What cannot be used is refused with a reason, never half taken.
func TestParseContractRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"broken JSON", `{"version": 0, "types": {`, "no JSON"},
		{"no version", `{"types": {}}`, "version"},
		{"another version", `{"version": 1}`, "version"},
		{"a baseline", `{"version": 0, "baseline": "net12"}`, "net12"},
	} {
		if _, err := parseContract([]byte(test.text), nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error about %q", test.name, err, test.want)
		}
	}
}

// What cannot be an offset or a value is left out, and all else is taken.
func TestParseContractLeavesOut(t *testing.T) {
	for name, text := range map[string]string{
		"a slot that is not there":    `{"version": 0, "types": {"T": {"G": 8}}, "globals": {"F": [[9], "pointer"], "G": 1}}`,
		"a value of no known shape":   `{"version": 0, "types": {"T": {"G": 8}}, "globals": {"F": {"a": 1}, "G": 1}}`,
		"a huge offset":               `{"version": 0, "types": {"T": {"F": 4294967296, "G": 8}}, "globals": {"G": 1}}`,
		"a negative offset":           `{"version": 0, "types": {"T": {"F": -8, "G": 8}}, "globals": {"G": 1}}`,
		"a field without an offset":   `{"version": 0, "types": {"T": {"F": [], "G": 8}}, "globals": {"G": 1}}`,
		"an offset of no known shape": `{"version": 0, "types": {"T": {"F": {"a": 1}, "G": 8}}, "globals": {"G": 1}}`,
	} {
		c, err := parseContract([]byte(text), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, field := c.offsets["T.F"]
		_, value := c.globals["F"]
		if g, _ := c.global("G"); field || value || c.offsets["T.G"] != 8 || g != 1 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A runtime whose contract lacks fields is read as far as it goes: what needs
// them is missing, what does not is as always, and they are named.
func TestPartialContract(t *testing.T) {
	f := newFakeTypes(t)
	want := f.methods(t)
	p := f.core(t)
	open := func(lack ...string) *Runtime {
		r := fakeRuntime(t, p)
		for _, name := range lack {
			delete(r.data.offsets, name)
			delete(r.data.globals, name)
		}
		if err := r.layouts(); err != nil {
			t.Fatalf("without %v: %v", lack, err)
		}
		if slices.Sort(lack); !slices.Equal(slices.Sorted(slices.Values(r.Lacks)), lack) {
			t.Errorf("lacking is %v, want %v", r.Lacks, lack)
		}
		return r
	}
	if m, err := open("Thread.State", "Exception._HResult").MethodAt(want[0].ID); err != nil || m.Name != want[0].Name {
		t.Errorf("without a Thread's state a method is %+v, %v", m, err)
	}
	if m, err := open("MethodTable.Module").MethodAt(want[0].ID); err == nil || m.Name != "" {
		t.Errorf("without a MethodTable's module a method is %+v, %v", m, err)
	}
	if m, err := open("MethodDescTokenRemainderBitCount").MethodAt(want[0].ID); err == nil || m.Token != 0 {
		t.Errorf("without a way to read its token a method is %+v, %v", m, err)
	}
	r := open("TransitionBlock.!", "ThreadStore.ThreadCount")
	for id, kind := range r.frameKinds {
		if kind.transition() {
			t.Errorf("a %v, %#x, is still known", kind, id)
		}
	}
	if len(r.frameKinds) == 0 {
		t.Error("no kind of Frame is known")
	}
	if ts, warns := r.Threads(); len(ts) > 0 || len(warns) == 0 {
		t.Errorf("%d threads, %v", len(ts), warns)
	}
	r = fakeRuntime(t, p)
	delete(r.data.offsets, "RangeSection.Flags")
	if err := r.layouts(); err == nil || !strings.Contains(err.Error(), "RangeSection.Flags") {
		t.Errorf("without the flags of a range of code: %v", err)
	}
}

func FuzzParseContract(f *testing.F) {
	f.Add([]byte(`{"version":0,"baseline":"empty","types":{"Thread":{"!":1,"Id":16,"X":[304,"GCHandle"]}},"globals":{"A":["0x1","nuint"],"B":[[1],"pointer"]},"contracts":{"Thread":1}}`))
	f.Add([]byte(`{"version":0,/**/"types":{},}//`))
	f.Add([]byte(`{"version":0,"a":"\"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseContract(text, []uint64{0, 0x1000})
		if err != nil {
			return
		}
		for name, off := range c.offsets {
			if off < 0 || off > maxStructure {
				t.Errorf("%s = %d", name, off)
			}
		}
	})
}
