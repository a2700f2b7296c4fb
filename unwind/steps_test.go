package unwind

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"

	"github.com/seamwalk/seam/arch"
)

func unzstd(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(1<<31))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var b strings.Builder
	if _, err := z.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

// A space is memory made of a stack and images.
type space struct {
	stack  memtest.Piece[arch.Addr]
	images []*elfImage
}

func (m *space) View(a arch.Addr, n int) []byte {
	if b := m.stack.View(a, n); b != nil {
		return b
	}
	for _, i := range m.images {
		if i.span.Has(a) {
			return i.View(a, n)
		}
	}
	return nil
}

func (m *space) Word(a arch.Addr) (uint64, bool) {
	if b := m.View(a, 8); b != nil {
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}

// Real programs were single-stepped, with a shadow stack kept by their calls
// and returns. At every instruction our stack must be the same.
func TestEveryInstruction(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 90 MB of states")
	}
	dir := filepath.Join(corpus.Path(t), "steps-arm64")
	list, _ := filepath.Glob(filepath.Join(dir, "*.steps.zst"))
	for _, path := range list {
		name := strings.TrimSuffix(filepath.Base(path), ".steps.zst")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walkSteps(t, dir, name)
		})
	}
}

func mapImages(t *testing.T, dir, name string) (list []*elfImage) {
	maps, err := os.ReadFile(filepath.Join(dir, name+".maps"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, l := range strings.Split(strings.TrimSpace(string(maps)), "\n") {
		f := strings.Fields(l)
		if len(f) < 5 || seen[f[4]] {
			continue
		}
		seen[f[4]] = true
		var lo uint64
		fmt.Sscanf(f[0], "%x", &lo)
		// libstdc++.so.6.0.30 is kept as libstdc++.so.6.
		stem, _, _ := strings.Cut(filepath.Base(f[4]), ".so")
		found, _ := filepath.Glob(filepath.Join(dir, "..", "images", "elf", "*", stem+"*.zst"))
		for _, p := range found {
			if n := filepath.Base(p); n != stem+".zst" && !strings.HasPrefix(n, stem+".so") {
				continue
			}
			b := unzstd(t, p)
			if m := readELF(t, p, b, 0); m.arch == arch.ARM64 {
				list = append(list, readELF(t, p, b, lo-uint64(m.span.Lo)&^0xfff))
				break
			}
		}
	}
	return list
}

// resolver reports whether pc is at one of two instructions of glibc 2.36's
// _dl_runtime_resolve where its call frame information is wrong: its first,
// "nop; stp x8, x9, [sp, #-208]!", and its last, "ldp x17, x30, [sp], #16; br x16".
func resolver(m *space, pc arch.Addr) bool {
	const (
		nop, push   = 0xd503201f, 0xa9b327e8
		pull, leave = 0xa8c17bf1, 0xd61f0200
	)
	at := func(a arch.Addr) uint32 {
		if b := m.View(a, 4); b != nil {
			return binary.LittleEndian.Uint32(b)
		}
		return 0
	}
	return at(pc) == nop && at(pc+4) == push || at(pc-4) == pull && at(pc) == leave
}

func walkSteps(t *testing.T, dir, name string) {
	images := mapImages(t, dir, name)
	b := unzstd(t, filepath.Join(dir, name+".steps.zst"))
	if string(b[:8]) != "A64STEP1" {
		t.Fatal("not a stream of steps")
	}
	o := 8
	u64 := func() uint64 { o += 8; return binary.LittleEndian.Uint64(b[o-8:]) }
	u16 := func() int { o += 2; return int(binary.LittleEndian.Uint16(b[o-2:])) }
	_, lo, hi, ra0, cfa0, _ := u64(), u64(), u64(), u64(), u64(), u64()
	stack := make([]byte, hi-lo)
	m := &space{memtest.Piece[arch.Addr]{At: arch.Addr(lo), Data: stack}, images}
	o += copy(stack[hi-lo-18432:], b[o:o+18432])

	list := make([]Image, len(images))
	for i := range images {
		list[i] = images[i]
	}
	w := New(arch.ARM64.On(arch.Linux), m, list, nil).NewWalker()

	var libgcc *elfImage
	for _, i := range images {
		if strings.HasPrefix(filepath.Base(i.path), "libgcc_s") {
			libgcc = i
		}
	}

	type entry struct {
		ra, cfa uint64
		saved   [11]uint64 // x19 to x29 when the call was made
	}
	truth := []entry{{ra: ra0, cfa: cfa0}}
	var last [11]uint64
	states, refused, bad := 0, 0, map[string]int{}
	for o < len(b) {
		tag := b[o]
		o++
		var push entry
		if tag&1 != 0 {
			push = entry{u64(), u64(), last}
		}
		if tag&2 != 0 {
			truth = truth[:len(truth)-u16()]
		}
		if tag&1 != 0 {
			truth = append(truth, push)
		}
		var r arch.Regs
		r.Set(arch.ARM64.PC, u64())
		r.Set(arch.ARM64.SP, u64())
		r.Set(29, u64())
		r.Set(30, u64())
		for i := arch.Reg(19); i <= 28; i++ {
			r.Set(i, u64())
		}
		for i := range last {
			last[i], _ = r.Get(arch.Reg(19 + i))
		}
		for range u16() {
			a, v := u64(), u64()
			binary.LittleEndian.PutUint64(stack[a-lo:], v)
		}
		if tag&4 != 0 {
			continue
		}
		states++
		pc, _ := r.Get(arch.ARM64.PC)
		where := fmt.Sprintf("%#x", pc)
		if resolver(m, arch.Addr(pc)) {
			continue
		}
		for _, i := range images {
			if i.span.Has(arch.Addr(pc)) {
				where = fmt.Sprintf("%s+%#x", filepath.Base(i.path), pc-i.Bias())
			}
		}
		ok := w.Start(&r, true, nil)
		for i, e := range slices.Backward(truth) {
			// To land in a handler, libgcc overwrites its own frame with the
			// handler's registers; from then on it cannot be left.
			if libgcc != nil && libgcc.span.Has(w.Frame().PC.Addr) {
				break
			}
			if ok = ok && w.Next(); !ok {
				// Two places cannot be left: code without a table whose
				// instructions say too little, and longjmp, which keeps
				// its way back where x0 points, and x0 is not recorded.
				if r := w.Stop().Reason; i == len(truth)-1 && (r == NoRule || r == RegisterUnknown) {
					refused++
					break
				}
				bad[fmt.Sprintf("%s: %v at depth %d", where, w.Stop().Reason, len(truth)-1-i)]++
				break
			}
			f := w.Frame()
			if uint64(f.PC.Addr) != e.ra || uint64(f.SP) != e.cfa {
				bad[fmt.Sprintf("%s: wrong frame %d by %v", where, len(truth)-1-i, f.By)]++
				break
			}
			if i == 0 {
				break // the call before the recording's start
			}
			for j, v := range e.saved {
				if got, known := w.Regs().Get(arch.Reg(19 + j)); !known || got != v {
					bad[fmt.Sprintf("%s: x%d of frame %d by %v", where, 19+j, len(truth)-1-i, f.By)]++
				}
			}
		}
	}
	n := 0
	var text []string
	for k, v := range bad {
		n += v
		text = append(text, fmt.Sprintf("%s (%d times)", k, v))
	}
	slices.Sort(text)
	t.Logf("%d states, %d wrong, %d refused", states, n, refused)
	if refused*50 > states {
		t.Errorf("%d of %d states refused", refused, states)
	}
	if n > 0 {
		t.Errorf("%s", strings.Join(text[:min(len(text), 40)], "\n"))
	}
}
