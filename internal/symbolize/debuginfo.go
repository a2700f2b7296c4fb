package symbolize

import (
	"debug/dwarf"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A debugInfo names functions by DWARF debugging information, which has the
// static ones that a symbol table may lack: those of NativeAOT's libraries in C
// have no symbols.
type debugInfo struct {
	mu   sync.Mutex
	data *dwarf.Data
}

// debugSections are what the names and ranges of functions are read from, besides
// .debug_info and .debug_abbrev.
var debugSections = []string{".debug_addr", ".debug_line_str", ".debug_str_offsets", ".debug_rnglists"}

// openDebugInfo takes the names of functions that no symbol table has.
func openDebugInfo(_ *Symbolizer, img *loader.Image) lookup {
	info := img.Section(".debug_info")
	if info == nil {
		return nil
	}
	data, err := dwarf.New(img.Section(".debug_abbrev"), nil, nil, info, nil, nil, img.Section(".debug_ranges"), img.Section(".debug_str"))
	if err != nil {
		return nil
	}
	for _, name := range debugSections {
		if b := img.Section(name); b != nil && data.AddSection(name, b) != nil {
			return nil
		}
	}
	return &debugInfo{data: data}
}

func (*debugInfo) last() bool { return false }

// maxDies bounds how many entries of a compilation unit are looked at for one
// address. The largest units of libcoreclr have some 200,000.
const maxDies = 1 << 20

// lookup looks for the function in the unit whose ranges have a.
func (d *debugInfo) lookup(a arch.LinkAddr) (name string, start, end arch.LinkAddr, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.data.Reader()
	if _, err := r.SeekPC(uint64(a)); err != nil {
		return "", 0, 0, false
	}
	for range maxDies {
		e, err := r.Next()
		if err != nil || e == nil || e.Tag == dwarf.TagCompileUnit {
			break
		}
		if e.Tag != dwarf.TagSubprogram {
			if e.Tag != dwarf.TagNamespace && e.Tag != dwarf.TagModule {
				r.SkipChildren()
			}
			continue
		}
		r.SkipChildren()
		ranges, err := d.data.Ranges(e)
		if err != nil {
			continue
		}
		for _, s := range ranges {
			if uint64(a) >= s[0] && uint64(a) < s[1] {
				name = d.name(e)
				return name, arch.LinkAddr(s[0]), arch.LinkAddr(s[1]), name != ""
			}
		}
	}
	return "", 0, 0, false
}

// maxOrigins bounds how many entries lead to one that has a name.
const maxOrigins = 4

// name returns what the linker would call a function: its own name, or that of
// the declaration or the inlined function that it is an instance of.
func (d *debugInfo) name(e *dwarf.Entry) string {
	for range maxOrigins {
		for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, dwarf.AttrName} {
			if s, ok := e.Val(attr).(string); ok && len(s) <= maxName {
				return s
			}
		}
		at, ok := e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		if !ok {
			at, ok = e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		}
		if !ok {
			return ""
		}
		r := d.data.Reader()
		r.Seek(at)
		var err error
		if e, err = r.Next(); err != nil || e == nil {
			return ""
		}
	}
	return ""
}
