package symbolize

import (
	"slices"
	"strings"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/loader"
)

// A source is one way to come by the symbols of an image. open parses them and
// returns nil when the image has none of the kind; it is called once an image,
// when every source before it had no name for an address.
type source struct {
	name string
	open func(s *Symbolizer, img *loader.Image) lookup
	// slow: it is unpacked and parsed as a whole, which takes longer than all stacks
	// of a small dump, so that it is opened only for code that has no name otherwise.
	// Such sources are the last.
	slow bool
}

// A lookup knows symbols of an image.
type lookup interface {
	// lookup returns the name of the symbol that a lies in, and the symbol's
	// addresses.
	lookup(a arch.LinkAddr) (name string, start, end arch.LinkAddr, ok bool)
	// last reports whether what it has no name for has none.
	last() bool
}

// tableOf makes a source's open of a function that parses a table.
func tableOf(open func(s *Symbolizer, img *loader.Image) *table) func(*Symbolizer, *loader.Image) lookup {
	return func(s *Symbolizer, img *loader.Image) lookup {
		if t := open(s, img); t != nil {
			return t
		}
		return nil
	}
}

// sources lists the ways to names in the order of asking. What a trimmed dump
// kept comes first, and is final where the dump was cut with the image's file,
// which may not be there now, or be another. Entries of the procedure linkage
// table come before symbols because _init, which has no size and lies in front
// of them, would reach over them. A separate debug file is no source of its own:
// the loader finds it, for unwind tables as well.
var sources = []source{
	{name: "kept", open: tableOf(openKept)},
	{name: "plt", open: tableOf(openPLT)},
	{name: "symtab", open: tableOf(openSymtab)},
	{name: "dynsym", open: tableOf(openDynsym)},
	{name: "gnu_debugdata", open: tableOf(openDebugData)},
	{name: "debug_info", open: openDebugInfo, slow: true},
}

// quick is how many of the sources are asked first.
var quick = slices.IndexFunc(sources, func(s source) bool { return s.slow })

// A Name is what a native address is called.
type Name struct {
	Function string // for eyes: demangled, without parameters and symbol version
	Symbol   string // as the symbol table has it; "" where nothing names the address
	Offset   uint64 // bytes from the symbol's start
	Source   string // which of the sources named it
}

// A Symbolizer names native addresses of one process. It is safe for
// concurrent use.
type Symbolizer struct {
	proc *loader.Process

	mu     sync.Mutex
	images map[*loader.Image]*symbols
}

// symbols is what is known of one image: its tables, as far as they were
// needed, and the answers given.
type symbols struct {
	once   []bin.Once // by source
	tables []lookup

	mu    sync.RWMutex
	named map[arch.LinkAddr]answer
}

// An answer is what a lookup found, without the offset, which differs from
// one pc of a function to another.
type answer struct {
	function, symbol, source string
	start                    arch.LinkAddr
	size                     uint64
	asked                    int // how many of the sources were asked, if none had a name
}

// New returns a symbolizer of p's native code.
func New(p *loader.Process) *Symbolizer {
	return &Symbolizer{proc: p, images: map[*loader.Image]*symbols{}}
}

// Native returns the image that pc lies in, nil where it lies in none, and what
// the code there is called.
func (s *Symbolizer) Native(pc arch.PC) (*loader.Image, Name) {
	at := pc.Lookup()
	img := s.proc.ImageAt(at)
	if img == nil {
		return nil, Name{}
	}
	if pc.Exact {
		// Who called a pointer to data stands in no function, and what lies
		// behind a symbol without a size is not its function's.
		if exec, known := s.proc.Memory.Untracked().Executable(at); known && !exec {
			return img, Name{}
		}
	}
	link := arch.LinkAddr(uint64(at) - img.Bias())
	y := s.of(img)
	a := y.answer(s, img, link, quick)
	if a.symbol == "" && !pc.Exact {
		// A signal handler returns to the first byte of the trampoline, which
		// nobody called: the byte in front of it is in no function.
		if t := y.answer(s, img, link+1, quick); t.start == link+1 {
			a = t
		}
	}
	if a.symbol == "" {
		a = y.answer(s, img, link, len(sources))
	}
	if a.symbol == "" {
		return img, Name{}
	}
	// The offset is the pc's own, not that of the byte that was looked up.
	off := uint64(pc.Addr) - img.Bias() - uint64(a.start)
	return img, Name{Function: a.function, Symbol: a.symbol, Offset: off, Source: a.source}
}

// Used returns the symbols that gave names so far, by image and address: what
// a trimmed dump must keep to give the same names. Their sizes say how far they
// reach, those of symbols that have none in their table included.
func (s *Symbolizer) Used() map[*loader.Image][]loader.Symbol {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := make(map[*loader.Image][]loader.Symbol, len(s.images))
	for img, y := range s.images {
		y.mu.RLock()
		list := []loader.Symbol{} // not nil: nothing named is an answer too
		for _, a := range y.named {
			if a.symbol != "" {
				list = append(list, loader.Symbol{At: a.start, Size: a.size, Name: a.symbol})
			}
		}
		y.mu.RUnlock()
		slices.SortFunc(list, func(a, b loader.Symbol) int {
			if a.At != b.At {
				return int(min(max(int64(a.At-b.At), -1), 1))
			}
			return strings.Compare(a.Name, b.Name)
		})
		used[img] = slices.Compact(list)
	}
	return used
}

func (s *Symbolizer) of(img *loader.Image) *symbols {
	s.mu.Lock()
	defer s.mu.Unlock()
	y := s.images[img]
	if y == nil {
		y = &symbols{once: make([]bin.Once, len(sources)), tables: make([]lookup, len(sources)), named: map[arch.LinkAddr]answer{}}
		s.images[img] = y
	}
	return y
}

// answer returns what the first n sources know of the code at link, which most
// stacks ask for again and again.
func (y *symbols) answer(s *Symbolizer, img *loader.Image, link arch.LinkAddr, n int) answer {
	y.mu.RLock()
	a := y.named[link]
	y.mu.RUnlock()
	if a.symbol != "" || a.asked >= n {
		return a
	}
	for i := a.asked; i < n; i++ {
		y.once[i].Do(func() { y.tables[i] = sources[i].open(s, img) })
		t := y.tables[i]
		a.asked = i + 1
		if t == nil {
			continue
		}
		if name, start, end, ok := t.lookup(link); ok {
			a = answer{symbol: name, source: sources[i].name, start: start, size: uint64(end - start)}
			a.function = Demangle(a.symbol)
			break
		}
		if t.last() {
			a.asked = len(sources)
			break
		}
	}
	y.mu.Lock()
	y.named[link] = a
	y.mu.Unlock()
	return a
}
