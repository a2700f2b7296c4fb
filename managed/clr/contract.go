package clr

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/arch"
)

// A contract is the runtime's data contract: layouts of its types and values
// of its globals (docs/design/datacontracts/data_descriptor.md of dotnet/runtime).
type contract struct {
	offsets map[string]int // "Thread.OSId" to its offset, "Thread.!" to the size of Thread
	globals map[string]global
	// contracts maps a contract's name to its version: "2" in .NET 10, "c2"
	// later.
	contracts map[string]string
	// unrecorded says that it was written by hand from the runtime's sources and from
	// what other platforms have, and that no recorded process has confirmed it.
	unrecorded bool
}

// A global is a number or text that the descriptor holds, or the address of a
// variable of the runtime.
type global struct {
	value   uint64
	text    string
	pointer bool // value is the address of a runtime variable
}

// Limits on what a descriptor may claim. Those of .NET 9 to 11 have at most
// 120 types and 25 pointers, in 11 kB.
const (
	maxDescriptor   = 1 << 20
	maxPointers     = 4096
	maxStructure    = 1 << 20 // bytes of one runtime structure
	contractVersion = 0
)

// parseContract reads the descriptor's JSON. Pointers are the slots of its
// pointer data, which indirect globals name by index.
func parseContract(text []byte, pointers []uint64) (*contract, error) {
	var doc struct {
		Version   *int
		Baseline  string
		Types     map[string]map[string]any
		Globals   map[string]any
		Contracts map[string]any
		// Of texts in layouts only.
		Unrecorded bool
	}
	if err := json.Unmarshal(lenient(text), &doc); err != nil {
		return nil, fmt.Errorf("the contract descriptor is no JSON: %w", err)
	}
	if doc.Version == nil || *doc.Version != contractVersion {
		return nil, fmt.Errorf("the contract descriptor has a version this program does not know (want %d)", contractVersion)
	}
	// Only the empty baseline has ever been shipped (.NET 9, 10).
	if doc.Baseline != "" && doc.Baseline != "empty" {
		return nil, fmt.Errorf("the contract descriptor builds on a baseline this program does not know: %q", doc.Baseline)
	}
	c := &contract{
		offsets:   make(map[string]int, 512),
		globals:   make(map[string]global, len(doc.Globals)),
		contracts: make(map[string]string, len(doc.Contracts)),

		unrecorded: doc.Unrecorded,
	}
	for typ, fields := range doc.Types {
		for name, v := range fields {
			if l, ok := v.([]any); ok && len(l) > 0 {
				v = l[0] // [offset, "type"]
			}
			// One that cannot be an offset is left out: most are of no use
			// here, and those that are count as lacking.
			if n, ok := number(v); ok && n <= maxStructure {
				c.offsets[typ+"."+name] = int(n)
			}
		}
	}
	for name, v := range doc.Globals {
		if g, ok := parseGlobal(v, pointers); ok {
			c.globals[name] = g
		}
	}
	for name, v := range doc.Contracts {
		c.contracts[name] = fmt.Sprint(v)
	}
	return c, nil
}

// parseGlobal reads one of the four shapes that a global has: v, [n],
// [v, "type"] and [[n], "type"], where n is a slot of the pointer data.
func parseGlobal(v any, pointers []uint64) (g global, ok bool) {
	if l, ok := v.([]any); ok && len(l) == 2 {
		v = l[0]
	}
	if l, ok := v.([]any); ok && len(l) == 1 {
		n, ok := number(l[0])
		if !ok || n >= uint64(len(pointers)) {
			return global{}, false
		}
		return global{value: pointers[n], pointer: true}, true
	}
	if n, ok := number(v); ok {
		g := global{value: n}
		if s, ok := v.(string); ok {
			g.text = s
		}
		return g, true
	}
	s, ok := v.(string)
	return global{text: s}, ok
}

// number reads a JSON number, or a decimal or hexadecimal one in a string.
func number(v any) (uint64, bool) {
	switch v := v.(type) {
	case float64:
		return uint64(int64(v)), v == float64(int64(v))
	case string:
		s, neg := strings.CutPrefix(v, "-")
		n, err := strconv.ParseUint(s, 0, 64)
		if neg {
			n = -n
		}
		return n, err == nil
	}
	return 0, false
}

// lenient removes comments and trailing commas, which the descriptor's format
// allows and encoding/json does not. No build shipped so far has any.
func lenient(text []byte) []byte {
	if json.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	comma := -1 // where in out an as yet unused comma lies
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case b == '"':
			j := i + 1
			for j < len(text) && text[j] != '"' {
				if text[j] == '\\' {
					j++
				}
				j++
			}
			j = min(j+1, len(text))
			out, comma, i = append(out, text[i:j]...), -1, j-1
		case b == '/' && i+1 < len(text) && text[i+1] == '/':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case b == '/' && i+1 < len(text) && text[i+1] == '*':
			end := strings.Index(string(text[i+2:]), "*/")
			if end < 0 {
				return out
			}
			i += end + 3
		case b == ',':
			comma = len(out)
			out = append(out, b)
		case b == '}' || b == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
			out = append(out, b)
		default:
			if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
				comma = -1
			}
			out = append(out, b)
		}
	}
	return out
}

// nowhere stands for the offset of a field whose place is not known: no address
// that it is added to is one of a process, so that what lies there is missing.
const nowhere = math.MinInt

// fill sets the int fields of the struct that v points to from their tags:
// `c:"Type.Field"` is the field's offset, `c:"Type.!"` the size of the type. A
// field that is not known is nowhere, and its name is in lacks; one whose tag ends
// in ",optional" is then -1, and lacks does not have it.
func (c *contract) fill(v any) (lacks []string) {
	s := reflect.ValueOf(v).Elem()
	for i := range s.NumField() {
		tag, ok := s.Type().Field(i).Tag.Lookup("c")
		if !ok {
			continue
		}
		name, optional := strings.CutSuffix(tag, ",optional")
		off, ok := c.offsets[name]
		switch {
		case !ok && optional:
			off = -1
		case !ok:
			off, lacks = nowhere, append(lacks, name)
		}
		s.Field(i).SetInt(int64(off))
	}
	return lacks
}

// global returns a global that is a number.
func (c *contract) global(name string) (uint64, bool) {
	g, ok := c.globals[name]
	return g.value, ok && !g.pointer
}

// pointer returns the address of the runtime variable that a global names.
func (c *contract) pointer(name string) (arch.Addr, bool) {
	g, ok := c.globals[name]
	return arch.Addr(g.value), ok && g.pointer && g.value != 0
}
