package clr

import (
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
		ID      int `c:"Thread.Id"`
		Default int `c:"Thread.NotThere,12"`
		Size    int `c:"Thread.!"`
	}
	if err := c.fill(&l); err != nil || l.ID != 16 || l.Default != 12 || l.Size != 640 {
		t.Errorf("fill: %+v, %v", l, err)
	}
	var missing struct {
		X int `c:"Thread.NotThere"`
	}
	if err := c.fill(&missing); err == nil || !strings.Contains(err.Error(), "Thread.NotThere") {
		t.Errorf("a missing field gives %v", err)
	}
}

// What cannot be used is refused with a reason, never half taken.
func TestParseContractRefuses(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"broken JSON", `{"version": 0, "types": {`, "no JSON"},
		{"no version", `{"types": {}}`, "version"},
		{"another version", `{"version": 1}`, "version"},
		{"a baseline", `{"version": 0, "baseline": "net12"}`, "net12"},
		{"a slot that is not there", `{"version": 0, "globals": {"G": [[9], "pointer"]}}`, "slot 9"},
		{"a huge offset", `{"version": 0, "types": {"T": {"F": 4294967296}}}`, "T.F"},
		{"a negative offset", `{"version": 0, "types": {"T": {"F": -8}}}`, "T.F"},
		{"a field without an offset", `{"version": 0, "types": {"T": {"F": []}}}`, "T.F"},
	} {
		if _, err := parseContract([]byte(test.text), nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want an error about %q", test.name, err, test.want)
		}
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
