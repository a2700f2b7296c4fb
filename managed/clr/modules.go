package clr

import (
	"fmt"
	"strings"
	"unicode/utf16"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/loader"
)

// A module is a Module object: one assembly file in one load context, or an
// emitted one.
type module struct {
	name string         // its path, or its simple name; "" if neither is at hand
	base arch.Addr      // of its image; 0 if it has none or that is not known
	meta *ecma.Metadata // nil if err is not
	err  error
}

// module returns the Module at a; what is wrong with it is its err.
func (r *Runtime) module(a arch.Addr) *module {
	if m, ok := r.names.kept.modules.Load(a); ok {
		return m.(*module)
	}
	m := &module{name: r.moduleName(a)}
	m.base, _ = r.moduleBase(a)
	if m.meta, m.err = r.metadata(a); m.err != nil {
		m.err = fmt.Errorf("module %s: %w", orUnknown(m.name), m.err)
	} else if m.name == "" {
		m.name, _ = m.meta.AssemblyName()
	}
	kept, _ := r.names.kept.modules.LoadOrStore(a, m)
	return kept.(*module)
}

// orUnknown stands in for a name in an error.
func orUnknown(name string) string {
	if name == "" {
		return "without a known name"
	}
	return name
}

// maxPath bounds names of files, in UTF-16 units.
const maxPath = 4096

// moduleName returns the path of a module. One out of a single-file bundle has
// no path, but the name of its file; an emitted one has a simple name only.
func (r *Runtime) moduleName(a arch.Addr) string {
	n := &r.names
	for _, p := range r.modulePaths(a) {
		if p == 0 {
			continue
		}
		if s := r.utf16z(p, maxPath); s != "" {
			return s
		}
	}
	// Its text may be missing; the image is known by its mapping too. The
	// simple name need not be the file's.
	if base, _ := r.moduleBase(a); base != 0 {
		img := r.proc.ImageAt(base)
		switch {
		case img == nil || img.Format != "pe" || img.ID.Name == "":
		case strings.HasSuffix(img.Path, img.ID.Name):
			return img.Path
		default: // out of a bundle, whose path it has
			return img.ID.Name
		}
	}
	if p, ok := r.word(field(a, n.ModName)); ok && n.ModName >= 0 && p != 0 {
		s, _ := ecma.CString(r.mem, arch.Addr(p), maxPath)
		return s
	}
	return ""
}

// metadata finds the metadata of the Module at a. An image has it inside;
// emitted and collectible modules keep a copy beside (EcmaMetadata.md).
func (r *Runtime) metadata(a arch.Addr) (*ecma.Metadata, error) {
	base, lost := r.moduleBase(a)
	if lost != 0 {
		return nil, missing("its image's address", lost)
	}
	if base != 0 {
		at, size, err := ecma.Locate(r.mem, base)
		if err != nil {
			return nil, err
		}
		return ecma.Open(r.mem, at, size)
	}
	p, lost := r.pointerAt(field(a, r.names.ModDynamic))
	switch {
	case lost != 0:
		return nil, missing("the address of its metadata", lost)
	case p == 0:
		return nil, fmt.Errorf("it has neither an image nor saved metadata")
	}
	at, size, err := r.savedMetadata(p)
	if err != nil {
		return nil, err
	}
	return ecma.Open(r.mem, at, size)
}

// missing says that the dump lacks what lies at a.
func missing(what string, a arch.Addr) error {
	return &ecma.Error{What: what, At: a, Missing: true}
}

// utf16z reads the UTF-16 text at a up to its zero, "" if a byte is missing
// before it or limit units hold none. Aligned words never reach into a page
// that the text does not.
func (r *Runtime) utf16z(a arch.Addr, limit int) string {
	var s []uint16
	for a%2 == 0 && len(s) < limit {
		v, ok := r.word(a &^ 7)
		if !ok {
			return ""
		}
		for v >>= 8 * (a & 7); ; v >>= 16 {
			if uint16(v) == 0 {
				return string(utf16.Decode(s))
			}
			s = append(s, uint16(v))
			if a += 2; a%8 == 0 {
				break
			}
		}
	}
	return ""
}

// Bounds on the lists of the loader.
const (
	maxAssemblies = 1 << 16
	maxMapBlocks  = 1 << 12
)

// moduleOf finds the module that declares MethodDef row rid as the MethodDesc
// md, without md's own MethodTable: the one whose map of methods says so, or
// whose ReadyToRun code of that row is md's. It is nil when none does, as for
// instantiations of generic methods.
func (r *Runtime) moduleOf(md arch.Addr, rid uint32) *module {
	var found *module
	seen := map[arch.Addr]bool{}
	r.loadedModules(r.mem, func(a, _ arch.Addr) bool {
		if !seen[a] && r.methodDef(a, rid) == md {
			found = r.module(a)
		}
		seen[a] = true
		return found == nil
	})
	if found != nil {
		return found
	}
	r.sections(func(s rangeSection) bool {
		if s.r2r != 0 && r.entryMethod(s, rid) == md {
			found = r.module(s.r2r)
		}
		return found == nil
	})
	return found
}

// loadedModules yields the Modules of the application domain's assemblies, with
// the entries of the domain's list, and of ReadyToRun images, with 0; some
// twice. The assemblies are read from mem.
func (r *Runtime) loadedModules(mem *loader.Memory, yield func(mod, item arch.Addr) bool) {
	n := &r.names
	more := true
	r.sections(func(s rangeSection) bool {
		more = s.r2r == 0 || yield(s.r2r, 0)
		return more
	})
	at, ok := r.data.pointer("AppDomain")
	if !more || !ok || n.DomainList < 0 {
		return
	}
	domain, ok := r.word(at)
	if !ok {
		return
	}
	list := field(arch.Addr(domain), n.DomainList)
	left, _ := r.u32(field(list, n.ListCount))
	left = min(left, maxAssemblies)
	for block := field(list, n.ListFirst); left > 0 && block != 0; {
		size, ok1 := r.u32(field(block, n.BlockSize))
		next, ok2 := r.word(field(block, n.BlockNext))
		if !ok1 || !ok2 || size == 0 {
			return
		}
		for i := range min(size, left) {
			item, ok := r.word(field(block, n.BlockItems) + 8*arch.Addr(i))
			if !ok {
				return
			}
			if mod, ok := r.assemblyModule(mem, arch.Addr(item)); ok && !yield(mod, arch.Addr(item)) {
				return
			}
		}
		left -= min(size, left)
		block = arch.Addr(next)
	}
}

// assemblyModule returns the Module of an entry of the domain's list: of an
// Assembly, or (.NET 10) of a DomainAssembly, which begins with the address of
// one. A Module leads back to its Assembly.
func (r *Runtime) assemblyModule(mem *loader.Memory, item arch.Addr) (mod arch.Addr, ok bool) {
	n := &r.names
	inner, _ := mem.Word(item)
	for _, a := range []arch.Addr{item, arch.Addr(inner)} {
		mod, ok1 := mem.Word(field(a, n.AssemblyMod))
		back, ok2 := mem.Word(field(arch.Addr(mod), n.ModAssembly))
		if ok1 && ok2 && arch.Addr(back) == a {
			return arch.Addr(mod), true
		}
	}
	return 0, false
}

// methodDef returns the MethodDesc that a Module has for MethodDef row rid; 0
// if none was made or the dump lacks it.
func (r *Runtime) methodDef(mod arch.Addr, rid uint32) (md arch.Addr) {
	r.methodMap(r.mem, mod, func(first, count uint32, table arch.Addr) bool {
		if rid-first >= count {
			return true
		}
		v, _ := r.word(table + 8*arch.Addr(rid-first))
		md = arch.Addr(v &^ mapFlags)
		return false
	})
	return md
}

// methodMap yields the tables of a Module's map of methods, of which each goes
// on where the one before ends: count words for the rows from first on.
func (r *Runtime) methodMap(mem *loader.Memory, mod arch.Addr, yield func(first, count uint32, table arch.Addr) bool) {
	n := &r.names
	m, first := field(mod, n.ModMethods), uint32(0)
	for range maxMapBlocks {
		size := mem.View(field(m, n.MapCount), 4)
		table, ok1 := mem.Word(field(m, n.MapTable))
		next, ok2 := mem.Word(field(m, n.MapNext))
		if size == nil || !ok1 || !ok2 {
			return
		}
		count := le32(size)
		if count > maxRows || !yield(first, count, arch.Addr(table)) {
			return
		}
		first += count
		if m = arch.Addr(next); m == 0 {
			return
		}
	}
}

// maxRows bounds the rows of one metadata table, as a token does.
const maxRows = 1 << 24

// A definition says of which Module and MethodDef row a MethodDesc is.
type definition struct {
	mod  arch.Addr
	rid  uint32
	item arch.Addr // the entry of the domain's list that led there, or 0
}

// definition finds the method whose MethodDesc is at md by md's address alone,
// for a MethodDesc that the dump lacks: createdump leaves those out whose
// frames its own walk has missed, while the maps of methods are there. They
// are read whole, once, and only for this.
func (r *Runtime) definition(md arch.Addr) (definition, bool) {
	d, ok := r.definitions()[md]
	if ok { // of all that was read, a trim keeps what led to the one that was found
		if d.item != 0 {
			r.assemblyModule(r.mem, d.item)
		}
		r.methodDef(d.mod, d.rid)
	}
	return d, ok
}

// definitions returns all methods that Modules define, by their MethodDescs.
func (r *Runtime) definitions() map[arch.Addr]definition {
	k := r.names.kept
	k.reverse.Do(func() {
		k.definitions = map[arch.Addr]definition{}
		left := maxMapWords
		all := r.mem.Untracked()
		r.loadedModules(all, func(mod, item arch.Addr) bool {
			r.methodMap(all, mod, func(first, count uint32, table arch.Addr) bool {
				for i := uint32(0); i < count && left > 0; i, left = i+1, left-1 {
					at := table + 8*arch.Addr(i)
					v, ok := all.Word(at)
					if !ok { // nor is the rest of its page
						i += uint32(pageSize-at%pageSize)/8 - 1
						left -= missCost
					}
					if v &^= mapFlags; ok && v != 0 {
						k.definitions[arch.Addr(v)] = definition{mod, first + i, item}
					}
				}
				return left > 0
			})
			return left > 0
		})
	})
	return k.definitions
}

// maxMapWords bounds what is read of all maps together. Large programs have a
// million methods.
const (
	maxMapWords = 1 << 23
	missCost    = 1 << 7 // what a page that is not there counts for
)

// mapFlags are what a ModuleLookupMap may keep in the low bits of its entries.
const mapFlags = 7
