package managed

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// FuzzOpen changes bytes of a whole dump, opens it, and walks every thread:
// nothing panics, every walk ends, within bounds. An input is a list of edits,
// each an address or file offset (6 bytes), a value (8 bytes), and how to
// apply it (1 byte), so that the corpus stays small. Each is opened anew, which
// costs milliseconds, and all seeds are run before the first new input: of the
// places of one kind a few are enough.
func FuzzOpen(f *testing.F) {
	core := editable(f, "net10-crash-kernel")
	v := openFixture(f, "net10-crash-kernel")
	rt := coreclr(v)
	threads, _ := rt.Threads()
	add := func(how byte, at, value uint64) {
		f.Add(appendEdit(nil, how, at, value))
	}
	for _, th := range threads[:min(2, len(threads))] {
		add(0, uint64(th.Addr)+threadLink, uint64(threads[0].Addr)+threadLink)
		add(0, uint64(th.Addr)+threadFrame, uint64(th.Addr))
		add(1, uint64(th.Addr), 64)
	}
	for i := range v.Process.Threads {
		fs, _ := v.NewWalker().Walk(nil, &v.Process.Threads[i])
		kinds := map[code.Kind]bool{}
		for k := range fs {
			c := fs[k].Code
			if kinds[c.Kind] {
				continue
			}
			kinds[c.Kind] = true
			add(0, uint64(fs[k].SP)-8, uint64(fs[0].PC.Addr))
			if c.Start != 0 {
				add(0, uint64(c.Start)-8, uint64(fs[k].SP))
				own, _ := rt.CodeAt(c.Start)
				add(0, uint64(own.Header)+8, ^uint64(0))
				add(1, uint64(own.Header), 32)
			}
		}
	}
	for off := uint64(0); off < 128; off += 8 { // file header and first program header
		add(2, off, ^uint64(0)>>1)
	}
	path := filepath.Join(f.TempDir(), "core")
	f.Fuzz(func(t *testing.T, edits []byte) {
		c := core.Clone()
		if len(edits) > 15*64 {
			return
		}
		for e := edits; len(e) >= 15; e = e[15:] {
			how, at, value := edit15(e)
			switch how % 3 {
			case 0:
				c.SetWord(at, value) // where there is no memory, nothing changes
			case 1:
				c.Hole(at, value%4096)
			case 2:
				c.SetFile(at, value)
			}
		}
		if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		defer func() {
			if d := time.Since(began); d > 30*time.Second {
				t.Fatalf("takes %v", d)
			}
		}()
		p, err := loader.Open(path, &loader.Options{Limits: loader.Limits{Threads: 1000}})
		if err != nil {
			return
		}
		defer p.Close()
		s := Open(p, &Options{MaxFrames: 10000})
		for _, st := range walkAll(s) {
			if len(st.frames) > 2*10000 { // as many gaps at most
				t.Fatalf("%d frames", len(st.frames))
			}
			for i := range st.frames {
				if f := &st.frames[i]; f.Runtime != nil && f.Code.Method != 0 {
					f.Runtime.Describe(&f.Code)
				}
			}
		}
		s.Methods()
	})
}

func appendEdit(b []byte, how byte, at, value uint64) []byte {
	b = append(b, how)
	for i := range 6 {
		b = append(b, byte(at>>(8*i)))
	}
	for i := range 8 {
		b = append(b, byte(value>>(8*i)))
	}
	return b
}

func edit15(b []byte) (how byte, at, value uint64) {
	for i := range 6 {
		at |= uint64(b[1+i]) << (8 * i)
	}
	for i := range 8 {
		value |= uint64(b[7+i]) << (8 * i)
	}
	return b[0], at, value
}
