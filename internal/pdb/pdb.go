package pdb

import (
	"encoding/binary"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/ecma"
)

// A File is a portable PDB. It is safe for concurrent use.
type File struct {
	meta      *ecma.Metadata
	methods   sync.Map // *method by MethodDef row
	kept      atomic.Int64
	documents sync.Map // string by Document row
}

// A method is what was read of a method, once.
type method struct {
	points []Point
	err    error
}

// maxKept bounds the points that are remembered; those of methods beyond that are
// read again each time.
const maxKept = 1 << 20

// A source is the bytes of a PDB as a memory that begins at address 0. The bytes
// of a mapped file can go away, so they are asked for anew at each read.
type source func() []byte

func (s source) View(a arch.Addr, n int) []byte { return bin.Slice(s(), uint64(a), uint64(n)) }

func (s source) Word(a arch.Addr) (uint64, bool) {
	b := s.View(a, 8)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// Open reads the header of the PDB whose bytes data returns, each time that some
// are read.
func Open(data func() []byte) (*File, error) {
	meta, err := ecma.Open(source(data), 0, uint32(min(len(data()), 1<<32-1)))
	if err != nil {
		return nil, err
	}
	return &File{meta: meta}, nil
}

// Line returns the source file and the line, from 1 on, that the IL at offset il
// of MethodDef row rid was compiled from. As the runtime's own stack traces do, it
// takes the last sequence point at or before il that is not hidden
// (StackTraceSymbols.GetSourceLineInfo, System.Diagnostics.StackTrace). The file
// is "" where the method has no such point, and where an error says what is wrong.
func (f *File) Line(rid, il uint32) (file string, line int, err error) {
	points, err := f.points(rid)
	if err != nil {
		return "", 0, err
	}
	i := sort.Search(len(points), func(i int) bool { return points[i].IL > il })
	for i--; i >= 0; i-- {
		if p := &points[i]; !p.Hidden {
			if file, err = f.document(p.Document); err != nil || file == "" {
				return "", 0, err // a line of no file says nothing
			}
			return file, int(p.Line), nil
		}
	}
	return "", 0, nil
}

// points returns the sequence points of a method.
func (f *File) points(rid uint32) ([]Point, error) {
	if m, ok := f.methods.Load(rid); ok {
		m := m.(*method)
		return m.points, m.err
	}
	m := &method{}
	d, err := f.meta.MethodDebug(rid)
	if m.err = err; err == nil && len(d.Points) > 0 {
		m.points, m.err = Points(d.Points, d.Document)
	}
	if f.kept.Add(int64(len(m.points))+1) <= maxKept {
		f.methods.Store(rid, m)
	}
	return m.points, m.err
}

// document returns the name of a source file.
func (f *File) document(rid uint32) (string, error) {
	if s, ok := f.documents.Load(rid); ok {
		return s.(string), nil
	}
	s, err := f.meta.Document(rid)
	if err == nil {
		f.documents.Store(rid, s)
	}
	return s, err
}
