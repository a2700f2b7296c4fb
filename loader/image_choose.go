package loader

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/internal/objfile"
)

// maxScan bounds how much of a dump is searched for pointers into images.
const maxScan = 1 << 30

// spanBits is the power of two that bounds how finely find tells where flat
// images lie: in pages, if they lie within a gigabyte.
const spanBits = 18

// pointers knows which addresses in flat-mapped images of unknown identity
// occur as words in the process's writable memory. gcore and the kernel leave
// out every page of an assembly that is mapped flat, its header too, and
// builds of one assembly often have the same size in pages. But the runtime
// keeps pointers to the parts of the metadata it has opened, and these lie
// elsewhere in another build. The search reads the dump, so it is made only
// when several files would do.
type pointers struct {
	once bin.Once
	to   map[arch.Addr]struct{}
}

// find searches once. The pages it reads are given back as it goes.
func (p *pointers) find(m *Memory, images []*Image) map[arch.Addr]struct{} {
	p.once.Do(func() {
		p.to = map[arch.Addr]struct{}{}
		var spans arch.Spans
		for _, im := range images {
			if im.Flat && im.pe == nil {
				spans = append(spans, im.span) // by address, as images are
			}
		}
		if len(spans) == 0 {
			return
		}
		// Other mappings lie between the images, and heaps are full of pointers
		// into these: a bit for every few pages passes over most of them.
		lo, size := uint64(spans[0].Lo), uint64(spans[len(spans)-1].Hi-spans[0].Lo)
		shift := max(12, bits.Len64(size)-spanBits)
		var near [1 << spanBits / 64]uint64
		for _, s := range spans {
			for k := (uint64(s.Lo) - lo) >> shift; k <= (uint64(s.Hi)-1-lo)>>shift; k++ {
				near[k>>6] |= 1 << (k & 63)
			}
		}
		scanned := 0
		for _, s := range m.segs {
			if mp, ok := m.mappedAt(s.lo); ok && mp.flags&uint32(elf.PF_W) == 0 {
				continue
			}
			b := s.data[min(uint64(-s.lo&7), uint64(len(s.data))):]
			for len(b) >= 8 && scanned < maxScan {
				chunk := b[:min(len(b)&^7, 1<<22)]
				for i := 0; i+8 <= len(chunk); i += 8 {
					w := binary.LittleEndian.Uint64(chunk[i:])
					k := (w - lo) >> shift
					if w-lo < size && near[k>>6]>>(k&63)&1 != 0 && spans.Has(arch.Addr(w)) {
						p.to[arch.Addr(w)] = struct{}{}
					}
				}
				release(chunk)
				scanned += len(chunk)
				b = b[len(chunk):]
			}
		}
	})
	return p.to
}

// metadataParts returns where a PE file has its metadata root and the streams of
// it: file offsets, relative to the image's begin. It has those before the first
// that is broken.
func metadataParts(data []byte) (offs []uint64) {
	at, size, err := ecma.Locate(objfile.Bytes(data), 0)
	if err != nil {
		return nil
	}
	offs = append(offs, uint64(at))
	streams, _ := ecma.Streams(objfile.Bytes(data), at, size)
	for _, s := range streams {
		offs = append(offs, uint64(at)+uint64(s.Off))
	}
	return offs
}

// best returns which of several files that would do has its metadata where
// the process has pointers to; the first of those that are alike.
func (s *source) best(files [][]byte) int {
	images := s.images[:0:0]
	for _, m := range s.images {
		if m.Flat && m.pe == nil {
			images = append(images, m)
		}
	}
	if len(images) == 0 {
		return 0
	}
	to := s.p.pointers.find(s.p.Memory, s.p.Images)
	score := make([]int, len(files))
	for i, data := range files {
		for _, off := range metadataParts(data) {
			for _, m := range images {
				if _, ok := to[m.span.Lo+arch.Addr(off)]; ok {
					score[i]++
				}
			}
		}
	}
	return slices.Index(score, slices.MaxFunc(score, cmp.Compare[int]))
}
