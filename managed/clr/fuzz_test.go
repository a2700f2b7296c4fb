package clr

import (
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// FuzzNames damages the words of a made runtime: names, exceptions and the
// list of methods must end, and take no more room than is there.
func FuzzNames(f *testing.F) {
	types := newFakeTypes(f)
	want := types.methods(f)
	model := fakeRuntime(f, nil)
	types.heap(model, 0x800, []int{32, 0x100, 0x200}, []int{64, 64, 0x500})
	f.Add(uint64(want[0].ID), uint64(0), uint64(want[1].ID+8), uint64(1)<<40)
	f.Add(uint64(fakeSection+0x2000), uint64(fakeSection+0x2000), uint64(fakeSection), ^uint64(0))
	f.Add(uint64(0x13000000), ^uint64(0), uint64(fakeModule), uint64(fakeModule))
	f.Fuzz(func(t *testing.T, at1, v1, at2, v2 uint64) {
		old := map[arch.Addr]uint64{}
		for _, p := range [][2]uint64{{at1, v1}, {at2, v2}} {
			a := arch.Addr(p[0] &^ 7)
			if v, ok := types.fakeMemory[a]; ok {
				if _, again := old[a]; !again {
					old[a] = v
				}
				types.fakeMemory[a] = p[1]
			}
		}
		r := fakeRuntime(t, types.core(t))
		for a, v := range old {
			types.fakeMemory[a] = v
		}
		for _, w := range want {
			m, err := r.MethodAt(w.ID)
			if err == nil && m.Name == "" {
				t.Errorf("%v has neither a name nor an error", w.ID)
			}
		}
		r.TypeName(arch.Addr(v1))
		r.InFlight(&code.Thread{Exception: arch.Addr(at1)})
		r.exceptionAt(arch.Addr(v1))
		r.traceOf(arch.Addr(at1), maxTrace)
		n := 0
		r.Compiled(func(m code.Compiled) bool {
			if m.Span.Hi < m.Span.Lo {
				t.Errorf("method %v ends before it begins", m.Span)
			}
			n++
			return true
		})
		if n > 1000 {
			t.Errorf("%d methods", n)
		}
	})
}

// FuzzBounds reads bytes as a map of each form.
func FuzzBounds(f *testing.F) {
	for _, form := range boundsForms {
		f.Add(writeBounds(form, []mapping{{0, prologIL, false}, {7, 0, false}, {20, 5, true}}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, form := range boundsForms {
			n, last := 0, uint64(0)
			form.read(b, func(m mapping) bool {
				if m.native < last {
					t.Errorf("form %d goes back from %d to %d", form, last, m.native)
				}
				last = m.native
				n++
				return true
			})
			if n > 8*len(b) {
				t.Errorf("form %d: %d entries in %d bytes", form, n, len(b))
			}
		}
	})
}

// FuzzNativeTable reads bytes as a hash table of the native format: it must end
// soon, whatever number of buckets it claims.
func FuzzNativeTable(f *testing.F) {
	f.Add([]byte{1 << 2, 3, 5, 7, 0x11, 4 << 1, 0x22, 4 << 1, 0x33, 0x44}, uint32(10))
	f.Add([]byte{maxBuckets<<2 | 2, 0, 0, 0, 0, 255, 255, 255, 255}, ^uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, size uint32) {
		m := fakeMemory{}
		m.bytes(0x1000, b)
		n := 0
		p := m.core(t)
		nativeTable{r: &Runtime{proc: p, mem: p.Memory}, at: 0x1000, size: size}.entries(func(bucket uint32, _ arch.Addr) {
			if n++; bucket >= 1<<maxBuckets {
				t.Errorf("bucket %d", bucket)
			}
		})
		if n > maxEntries {
			t.Errorf("%d entries in %d bytes", n, len(b))
		}
	})
}
