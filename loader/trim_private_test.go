package loader

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
	"unicode/utf16"

	"github.com/seamwalk/seam/arch"
)

func wide(s string) (b []byte) {
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// What the process was started with is not in a trimmed core, wherever copies
// lie, but for the words that were read.
func TestTrimPrivate(t *testing.T) {
	const stackAt, heapAt = 0x7ffc0000e000, 0x560000001000
	const secret = "APP_TOKEN=hunter2-öffentlich"
	stack := make([]byte, 2*pageSize)
	copy(stack[0x200:], "a frame of main")
	const block = 0x1e00
	copy(stack[block:], "0123456789abcdefx86_64\x00prog\x00--user=grace.h\x00"+secret+"\x00A=1\x00/srv/prog")
	execFn := block + bytes.Index(stack[block:], []byte("/srv/prog"))
	heap := make([]byte, 3*pageSize)
	lay := func(at int, b []byte) { copy(heap[at:], b) }
	lay(0x20, []byte(secret))             // getenv's
	lay(0x105, wide(secret)[20:])         // the value, as a runtime has it
	lay(0x200, []byte(secret)[8:])        // freed since
	lay(0x300, []byte("grace.h"))         // an argument's value
	lay(0x400, []byte("keep --use this")) // not one of the texts
	lay(2*pageSize-10, []byte(secret))    // from a page that is not kept into one that is

	b := &buildCore{loads: []buildLoad{
		{addr: heapAt, data: heap, flags: elf.PF_R | elf.PF_W},
		{addr: stackAt, data: stack, flags: elf.PF_R | elf.PF_W},
	}}
	b.thread(1, 0, stackAt+0x200)
	var auxv []byte
	for _, v := range []uint64{atRandom, stackAt + block, atPlatform, stackAt + block + 16, atExecFn, uint64(stackAt + execFn), 0, 0} {
		auxv = binary.LittleEndian.AppendUint64(auxv, v)
	}
	b.note("CORE", ntAuxv, auxv)
	b.note("LINUX", 0x202, []byte(secret)) // vector registers
	p := b.open(t, &Options{Track: true})
	for _, a := range []arch.Addr{stackAt + 0x200, stackAt + pageSize, heapAt, heapAt + 2*pageSize + 0x800} {
		p.Memory.Word(a)
	}
	p.Memory.Word(heapAt + 0x208) // part of a copy
	var out bytes.Buffer
	if _, err := p.WriteTrimmed(&out, Kept{}); err != nil {
		t.Fatal(err)
	}
	core := out.Bytes()
	for _, s := range []string{"APP_TOKEN", "hunter2", "grace.h", "0123456789", "lich"} {
		if bytes.Contains(core, []byte(s)) || bytes.Contains(core, wide(s)) {
			t.Errorf("%q is in the trimmed core", s)
		}
	}
	q, err := openBytes("trimmed", core, Options{Limits: Limits{}.withDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   arch.Addr
		want string
	}{
		{stackAt + 0x200, "a frame of main"},
		{heapAt + 0x400, "keep --use this"},
		{heapAt + 0x208, secret[16:24]},
	} {
		if got := q.Memory.View(c.at, len(c.want)); string(got) != c.want {
			t.Errorf("at %v there is %q, not %q", c.at, got, c.want)
		}
	}
	if got := q.Memory.View(heapAt+pageSize, 1); got != nil {
		t.Error("a page that was not read is kept")
	}
}

// A block of many texts alike, and pages of the same, cost a bounded search;
// what could not be searched is blanked.
func TestTrimPrivateBound(t *testing.T) {
	const at = 0x7ffc00000000
	data := bytes.Repeat([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\x00"), 1<<14)
	data = append(data, make([]byte, -len(data)&(pageSize-1))...)
	b := &buildCore{loads: []buildLoad{{addr: at, data: data, flags: elf.PF_R | elf.PF_W}}}
	b.thread(1, 0, at)
	b.note("CORE", ntAuxv, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, atRandom), at+64))
	p := b.open(t, &Options{Track: true})
	p.Memory.Word(at + 8)
	var out bytes.Buffer
	if _, err := p.WriteTrimmed(&out, Kept{}); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(out.Bytes(), []byte("a")); n != 8 {
		t.Errorf("%d bytes of the page are left, 8 were read", n)
	}
}

// Variables are known by their look where no list of variables is in the dump.
func TestVariables(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"\x00PATH=/bin:/usr/bin\x00x", "PATH=/bin:/usr/bin"},
		{"!\x00\x00E_ROOTS=/opt", "E_ROOTS=/opt"}, // the rest of one
		{"a==b X=1 if(AB=c) \x00=\x00", ""},
		{"TOKEN=a=b=c\x01", "TOKEN=a=b=c"},
		{"TOKEN=", "TOKEN="},
	} {
		for _, in := range [][]byte{[]byte(c.in), wide(c.in), append([]byte{7}, wide(c.in)...)} {
			var got []byte
			variables(in, func(at, n int) { got = append(got, in[at:at+n]...) })
			if string(got) != c.want && !bytes.Equal(got, wide(c.want)) {
				t.Errorf("in %q: %q, want %q", in, got, c.want)
			}
		}
	}
}
