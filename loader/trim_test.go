package loader

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/objfile"
)

// retrim trims p and opens the result with no files.
func retrim(t *testing.T, p *Process, keep Kept) (*Process, TrimStats) {
	t.Helper()
	var buf bytes.Buffer
	st, err := p.WriteTrimmed(&buf, keep)
	if err != nil {
		t.Fatal(err)
	}
	if st.Bytes != int64(buf.Len()) {
		t.Errorf("%d bytes are claimed, %d written", st.Bytes, buf.Len())
	}
	q, err := openBytes("trimmed", buf.Bytes(), Options{Track: true, Limits: Limits{}.withDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	return q, st
}

// A trimmed core answers without files what the whole one answered with them,
// and so does one that was trimmed from it.
func TestTrimImage(t *testing.T) {
	lib := elfFile(t, []string{"-Wl,-z,lazy"})
	for _, header := range []bool{true, false} {
		p := library(t, lib, header)
		m := p.Images[0]
		ask := func(p *Process) string {
			m := p.Images[0]
			out := fmt.Sprintln(len(p.Threads), m.ID.Name, m.ID.BuildID, m.Path, m.Span(), m.Bias(), m.Format)
			for _, n := range []string{".eh_frame_hdr", ".eh_frame", ".plt", ".text", ".none"} {
				s, ok := m.Table(n)
				out += fmt.Sprintln(n, s, ok)
			}
			a, n, ok := m.Lookup("exported")
			out += fmt.Sprintln(a, n, ok)
			w, ok := p.Memory.Word(a)
			out += fmt.Sprintln(w, ok)
			c, _, _ := m.Lookup("counter")
			w, ok = m.FileWord(c &^ 7)
			out += fmt.Sprintln(w, ok)
			_, ok = p.Memory.Word(c)
			why, in := p.Memory.Absent(c)
			out += fmt.Sprintln(ok, why, in == m)
			why, in = p.Memory.Absent(0x1234567)
			return out + fmt.Sprintln(why, in)
		}
		want := ask(p)
		keep := Kept{
			Symbols:  map[*Image][]Symbol{m: {{0x1100, 16, "hidden"}, {0x1110, 0, "a name with spaces"}}},
			Sections: map[*Image]map[string][]byte{m: {".debug_frame": []byte("frames")}},
		}
		q, _ := retrim(t, p, keep)
		for range 2 {
			if got := ask(q); got != want {
				t.Errorf("header %v: got\n%swant\n%s", header, got, want)
			}
			if got := q.Images[0].KeptSymbols(); !reflect.DeepEqual(got, keep.Symbols[m]) {
				t.Errorf("symbols %v", got)
			}
			if got := q.Images[0].Section(".debug_frame"); string(got) != "frames" {
				t.Errorf("section %q", got)
			}
			q, _ = retrim(t, q, Kept{})
		}
	}
}

// A real dump, cut to the tops of its stacks.
func TestTrimCorpus(t *testing.T) {
	for _, name := range []string{"net10-hello-x64/normal.zst", "net10-crash-native-kernel-x64/kernel.zst", "net10-hello-arm64/dump.zst"} {
		p, err := Open(corpus.Path(t, name), &Options{Track: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ask := func(p *Process) (out []string) {
			for _, th := range p.Threads {
				sp, _ := th.Regs.Get(p.Arch.SP)
				for i := range 600 { // past the end of some stacks
					a := arch.Addr(sp) + arch.Addr(i*8)
					w, ok := p.Memory.Word(a)
					why, _ := p.Memory.Absent(a)
					out = append(out, fmt.Sprint(w, ok, why))
				}
			}
			for _, m := range p.Images {
				a, n, ok := m.Lookup("malloc")
				eh, _ := m.Table(".eh_frame")
				pd, _ := m.Directory(14)
				why, _ := p.Memory.Absent(m.Span().Lo + 0x1000)
				out = append(out, fmt.Sprint(m.ID, m.Path, m.Format, m.Flat, m.Span(), m.Bias(), a, n, ok, eh, pd, m.Verified(), why == ImageNotFound))
			}
			return append(out, fmt.Sprint(p.PID, p.Name, p.Crash, p.RuntimeHint, p.Arch.Name))
		}
		want := ask(p)
		q, st := retrim(t, p, Kept{})
		got := ask(q)
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %s\nbecomes %s", name, want[i], got[i])
				break
			}
		}
		for _, s := range p.Memory.Touched() {
			for a := s.Lo; a < s.Hi; a += 8 {
				if !p.Memory.track.has(a) {
					continue
				}
				if w := p.Memory.View(a, 8); !bytes.Equal(w, q.Memory.View(a, 8)) {
					t.Fatalf("%s: another word at %v", name, a)
				}
			}
		}
		if limit := int64(st.Touched)*pageSize*12/10 + 1<<17; st.Bytes > limit {
			t.Errorf("%s: %d bytes for %d pages", name, st.Bytes, st.Touched)
		}
		if !slices.EqualFunc(p.Threads, q.Threads, func(a, b Thread) bool { return a == b }) {
			t.Errorf("%s: other threads", name)
		}
	}
}

// The command line is left out.
func TestTrimArgs(t *testing.T) {
	var b buildCore
	ps := make([]byte, 136)
	copy(ps[40:], "prog")
	copy(ps[56:], "prog --password=hunter2")
	b.note("CORE", ntPRPSInfo, ps)
	b.thread(1, 0, 0)
	var buf bytes.Buffer
	p := b.open(t, &Options{Track: true})
	if _, err := p.WriteTrimmed(&buf, Kept{}); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(buf.Bytes(), []byte("hunter2")) {
		t.Error("the command line is still there")
	}
	if _, err := b.open(t, nil).WriteTrimmed(&buf, Kept{}); err == nil {
		t.Error("a dump that was not tracked is trimmed")
	}
}

// What opening reads, and look-ups of symbols, cost a trimmed core no page:
// it has the answers in notes.
func TestTrimNotes(t *testing.T) {
	lib := elfFile(t, nil)
	for _, header := range []bool{true, false} {
		p := library(t, lib, header)
		m := p.Images[0]
		at, size, ok := m.Lookup("exported")
		_, _, none := m.Lookup("not_there")
		if s, _ := m.Table(".eh_frame_hdr"); !ok || none || s.Lo == 0 {
			t.Fatal("the library is not as it should be")
		}
		q, st := retrim(t, p, Kept{})
		if st.Touched != 0 || len(q.Memory.segs) != 0 {
			t.Errorf("header %v: %d pages are kept", header, st.Touched)
		}
		for range 2 {
			n := q.Images[0]
			a, s, ok := n.Lookup("exported")
			if _, _, none := n.Lookup("not_there"); a != at || s != size || !ok || none {
				t.Errorf("header %v: exported is at %v, %d, %v; not_there: %v", header, a, s, ok, none)
			}
			if !slices.EqualFunc(n.progs, m.elfProgs(), func(a, b objfile.Prog) bool { a.At, b.At = 0, 0; return a == b }) {
				t.Errorf("header %v: other program headers", header)
			}
			q, _ = retrim(t, q, Kept{})
		}
	}
}

// A trimmed core says of an image whose file it was cut with that what it lacks
// was not kept; of others, that the file was not found. So does one cut of it.
func TestTrimAbsent(t *testing.T) {
	lib := elfFile(t, nil)
	whole := library(t, lib, true)
	if why, _ := whole.Memory.Absent(whole.Images[0].Span().Lo); why != Present {
		t.Fatal(why)
	}
	whole.Images[0].File()
	bare := mapLibrary(t, lib, false).open(t, &Options{Track: true})
	bare.Images[0].File()
	for _, c := range []struct {
		p    *Process
		want Absence
		cut  bool
	}{{whole, NotDumped, true}, {bare, ImageNotFound, false}} {
		q := c.p
		for range 2 {
			q, _ = retrim(t, q, Kept{})
			m := q.Images[0]
			code := m.Span().Lo + 0x1000
			if why, in := q.Memory.Absent(code); why != c.want || in != m || m.CutWithFile() != c.cut {
				t.Errorf("%v is missing because %v, want %v; cut with its file: %v", code, why, c.want, m.CutWithFile())
			}
			m.File()
		}
	}
}

// Only words that were read count as read.
func TestTouchedWords(t *testing.T) {
	s := newPageSet()
	s.add(0x1ffc, 8)   // over the edge of a page
	s.add(0x5008, 1)   // a byte is its word
	s.add(0x7000, 512) // many
	s.add(0x9000, 0)
	s.add(0x5000+1024*pageSize, 8) // shares its place in the table of pages seen
	for a := arch.Addr(0); a < 0x500000; a += 8 {
		want := a == 0x1ff8 || a == 0x2000 || a == 0x5008 || a >= 0x7000 && a < 0x7200 || a == 0x5000+1024*pageSize
		if s.has(a) != want {
			t.Errorf("the word at %v: %v", a, !want)
		}
	}
	if got := fmt.Sprint(s.spans()); got != fmt.Sprint([]arch.Span{{Lo: 0x1000, Hi: 0x3000}, {Lo: 0x5000, Hi: 0x6000}, {Lo: 0x7000, Hi: 0x8000}, {Lo: 0x405000, Hi: 0x406000}}) {
		t.Errorf("pages %s", got)
	}
}
