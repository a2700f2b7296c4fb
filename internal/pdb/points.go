package pdb

import (
	"fmt"

	"github.com/seamwalk/seam/internal/ecma"
)

// A Point is a sequence point: from its IL offset on, up to that of the next one,
// IL was compiled from its line.
type Point struct {
	IL       uint32 // offset in the method's IL, in bytes
	Line     uint32 // the first of the point's lines, from 1 on; means nothing if Hidden
	Document uint32 // row of Document, of the source file
	Hidden   bool   // the IL is of no line
}

// Bounds on what a point may say ("Sequence Points Blob").
const (
	maxIL      = 1<<29 - 1
	maxLine    = 1<<29 - 1
	hiddenLine = 0xfeefee
)

// maxPoints bounds the points of a method. Large generated ones have some 10,000.
const maxPoints = 1 << 18

// A pointError says where in a blob of sequence points its form is broken.
type pointError struct {
	at   int
	what string
}

func (e *pointError) Error() string {
	return fmt.Sprintf("the sequence points of a method are broken at byte %d: %s", e.at, e.what)
}

// Points reads a sequence points blob. document is the source file of all points,
// 0 where the blob itself says it. The points are by IL offset, each above the one
// before; a blob in which they are not is an error, as all that breaks the form,
// because a search in such points would find some other line.
func Points(b []byte, document uint32) ([]Point, error) {
	r := reader{b: b}
	r.number() // the local signature
	if document == 0 {
		document = r.number()
	}
	var points []Point
	var il, line int64
	var column int64
	started, shown := false, false // a point was read; one that is not hidden
	for r.at < len(b) && r.what == "" {
		delta := r.number()
		if started && delta == 0 {
			document = r.number()
			continue
		}
		started = true
		il += int64(delta)
		lines := int64(r.number())
		var columns int64
		if lines == 0 {
			columns = int64(r.number())
		} else {
			columns = r.signed()
		}
		p := Point{IL: uint32(il), Document: document, Hidden: lines == 0 && columns == 0}
		switch {
		case p.Hidden:
		case shown:
			line += r.signed()
			column += r.signed()
		default:
			line, column, shown = int64(r.number()), int64(r.number()), true
		}
		p.Line = uint32(line)
		switch {
		case il > maxIL:
			r.fail("an IL offset out of range")
		case !p.Hidden && (line < 0 || line+lines > maxLine || line == hiddenLine || column < 0):
			r.fail("a line out of range")
		case document == 0:
			r.fail("a point without a document")
		case len(points) == maxPoints:
			r.fail("more points than any method has")
		}
		points = append(points, p)
	}
	if r.what != "" {
		return nil, &pointError{r.at, r.what}
	}
	return points, nil
}

// A reader reads compressed numbers (ECMA-335 II.23.2). Behind a broken one it
// gives zeros.
type reader struct {
	b    []byte
	at   int
	what string // is wrong; "" for nothing
}

func (r *reader) fail(what string) {
	if r.what == "" {
		r.what = what
	}
}

// number reads an unsigned number.
func (r *reader) number() uint32 {
	v, _ := r.compressed()
	return v
}

// signed reads a signed number: its bits are rotated left by one, so that the
// sign comes last.
func (r *reader) signed() int64 {
	v, n := r.compressed()
	out := int64(v >> 1)
	if v&1 != 0 {
		out -= [...]int64{0, 1 << 6, 1 << 13, 0, 1 << 28}[n]
	}
	return out
}

func (r *reader) compressed() (v uint32, n int) {
	if r.what != "" {
		return 0, 0
	}
	v, n = ecma.Compressed(r.b[r.at:])
	if n == 0 {
		r.fail("a number that is cut or of no form")
	}
	r.at += n
	return v, n
}
