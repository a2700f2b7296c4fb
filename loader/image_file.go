package loader

import (
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"

	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// A source is the file that one or more images were mapped from. It is looked
// for, checked and mapped when it is first needed.
type source struct {
	p      *Process
	find   Finder
	id     ImageID
	path   string
	images []*Image // all that were mapped from it; the file must agree with each

	once     bin.Once
	opened   atomic.Bool
	mapped   []byte  // the whole file, as it was when it was opened; see bytes
	file     string  // path of the file that was taken
	state    Absence // why there is none
	refused  string  // of which files were refused, and why
	verified bool
	elf      *objfile.ELF // nil until a file has been taken
	pes      sync.Map     // *objfile.PE by offset

	debugOnce bin.Once
	debugInfo *debugFile
}

// open returns the file's bytes, or nil.
func (s *source) open() []byte {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		s.state = ImageNotFound
		if s.find == nil {
			return
		}
		if s.choose(each(s.find, s.id, s.path)) || s.fromBundle() {
			s.state = Present
		} else if s.refused != "" {
			s.state = ImageDiffers
			s.p.warnLate("image_differs", "%s", s.refused)
		}
	})
	s.opened.Store(true)
	return s.bytes()
}

// bytes returns what can be read of the file once it is open.
func (s *source) bytes() []byte { return s.p.held.whole(s.mapped) }

// from returns what can be read of the file from an offset on.
func (s *source) from(off uint64) []byte {
	b := s.bytes()
	return b[min(off, uint64(len(b))):]
}

// progs returns the file's program headers, once it is open.
func (s *source) progs() []objfile.Prog {
	if s.elf == nil {
		return nil
	}
	return s.elf.Progs
}

// A candidate is a file that may be a source's.
type candidate struct {
	path string
	data []byte
}

// maxCandidates bounds how many files that would do are compared.
const maxCandidates = 32

// choose takes the first file whose identity is known to be right, else the
// best of those that agree with all that the dump holds.
func (s *source) choose(paths iter.Seq[string]) bool {
	var fit []candidate
	var bytes [][]byte
	for path := range paths {
		c, ok := s.p.held.candidate(path)
		if !ok {
			continue
		}
		f, err := objfile.ParseELF(c.data)
		if err == nil && f.DebugOnly(c.data) {
			s.p.held.drop(c.data) // of the same build-id, but without the bytes that were mapped
			continue
		}
		why, sure := s.check(c.data, f)
		if why != "" {
			s.refused = fmt.Sprintf("%s is not the %s of the dump: %s", path, s.id.Name, why)
			s.p.held.drop(c.data)
			continue
		}
		fit, bytes = append(fit, c), append(bytes, c.data)
		if sure || len(fit) == maxCandidates {
			s.verified = sure
			break
		}
	}
	if len(fit) == 0 {
		return false
	}
	best := len(fit) - 1
	if !s.verified {
		best = 0
		if len(fit) > 1 {
			best = s.best(bytes)
		}
	}
	for i, c := range fit {
		if i != best {
			s.p.held.drop(c.data)
		}
	}
	s.take(fit[best])
	return true
}

// candidate opens the file at path.
func (h *held) candidate(path string) (c candidate, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return c, false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
		return c, false
	}
	data, err := h.open(f, st, st.Size())
	return candidate{path, data}, err == nil && len(data) > 0
}

// take makes c the source's file.
func (s *source) take(c candidate) {
	f, err := objfile.ParseELF(c.data)
	if err != nil {
		f = &objfile.ELF{} // a PE file has no program headers and no ELF sections
	}
	s.elf = f
	s.mapped, s.file, s.refused = c.data, c.path, ""
}

// peAt returns the headers of the PE image at an offset of the file, or nil.
func (s *source) peAt(off uint64) *objfile.PE {
	if h, ok := s.pes.Load(off); ok {
		return h.(*objfile.PE)
	}
	h, err := objfile.ParsePE(s.from(off))
	if err != nil {
		h = nil
	}
	s.pes.Store(off, h)
	return h
}
