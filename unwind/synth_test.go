package unwind

import (
	"encoding/binary"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
	"github.com/seamwalk/seam/internal/objfile"
)

// An asm puts bytes together.
type asm []byte

func (b asm) u8(v ...uint8) asm  { return append(b, v...) }
func (b asm) u16(v uint16) asm   { return binary.LittleEndian.AppendUint16(b, v) }
func (b asm) u32(v uint32) asm   { return binary.LittleEndian.AppendUint32(b, v) }
func (b asm) u64(v uint64) asm   { return binary.LittleEndian.AppendUint64(b, v) }
func (b asm) bytes(v []byte) asm { return append(b, v...) }
func (b asm) str(s string) asm   { return append(append(b, s...), 0) }
func (b asm) uleb(v uint64) asm  { return binary.AppendUvarint(b, v) }
func (b asm) block(v []byte) asm { return b.uleb(uint64(len(v))).bytes(v) }

func (b asm) sleb(v int64) asm {
	for {
		c := uint8(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// A function is code and how it is described.
type function struct {
	lo, size uint64
	aug      string // "zR" if empty
	enc      uint8  // of addresses; pcrel sdata4 if 0
	abs      bool   // enc is 0, absptr, and is meant
	version  uint8
	ra       uint64 // return address column; the CPU's if 0
	wide     bool   // 64-bit DWARF
	cie      asm    // initial instructions; the call's own rule if nil
	fde      asm
}

// A synth is an image made by a test: code at base, .eh_frame and its header
// where real ones are, and more memory.
type synth struct {
	memtest.Pieces[arch.Addr]
	arch   *arch.Arch
	tables map[string]arch.Span
	files  map[string][]byte
	span   arch.Span
	bias   uint64
}

const (
	synthBase = 0x400000
	synthEH   = 0x500000
	synthHdr  = 0x580000
	synthEnd  = 0x600000
)

func (m *synth) Span() arch.Span                     { return m.span }
func (m *synth) Bias() uint64                        { return m.bias }
func (m *synth) Section(name string) []byte          { return m.files[name] }
func (m *synth) Table(name string) (arch.Span, bool) { s, ok := m.tables[name]; return s, ok }

func (m *synth) add(at arch.Addr, b []byte) { m.Add(at, b) }

// unwinder returns an unwinder over m.
func (m *synth) unwinder(opt *Options) *Unwinder {
	return New(m.arch.On(arch.Linux), m, []Image{m}, opt)
}

// entryRule returns the initial instructions for a function of a.
func entryRule(a *arch.Arch) asm {
	if a.LR != arch.NoReg {
		return asm{}.u8(cfaDefCFA).uleb(uint64(a.SP)).uleb(0)
	}
	return asm{}.u8(cfaDefCFA).uleb(uint64(a.SP)).uleb(8).u8(cfaOffset | uint8(a.PC)).uleb(1)
}

// frames assembles the functions as .eh_frame or .debug_frame at address at,
// and returns where the FDEs lie.
func frames(a *arch.Arch, at uint64, debug bool, fns []function) (b asm, fdes []uint64) {
	for _, f := range fns {
		if f.aug == "" && !debug {
			f.aug = "zR"
		}
		if f.enc == 0 && !debug && !f.abs {
			f.enc = objfile.PtrPCRel | objfile.PtrS4
		}
		if f.version == 0 {
			f.version = 1
		}
		if f.ra == 0 {
			f.ra = uint64(a.PC)
			if a.LR != arch.NoReg {
				f.ra = uint64(a.LR)
			}
		}
		if f.cie == nil {
			f.cie = entryRule(a)
		}
		size := 4
		id := uint64(0)
		if debug {
			id = 1<<32 - 1
			if f.wide {
				size, id = 8, 1<<64-1
			}
		}
		num := func(b asm, v uint64) asm {
			if size == 8 {
				return b.u64(v)
			}
			return b.u32(uint32(v))
		}
		wrap := func(body asm) asm {
			if f.wide {
				return asm{}.u32(1<<32 - 1).u64(uint64(len(body))).bytes(body)
			}
			return asm{}.u32(uint32(len(body))).bytes(body)
		}

		cieAt := uint64(len(b))
		c := num(nil, id).u8(f.version).str(f.aug)
		if f.version == 4 {
			c = c.u8(8, 0)
		}
		c = c.uleb(1).sleb(-8)
		if f.version == 1 {
			c = c.u8(uint8(f.ra))
		} else {
			c = c.uleb(f.ra)
		}
		if f.aug != "" && f.aug[0] == 'z' {
			var data asm
			for _, l := range f.aug[1:] {
				switch l {
				case 'R':
					data = data.u8(f.enc)
				case 'L':
					data = data.u8(objfile.PtrAbs)
				case 'P':
					data = data.u8(objfile.PtrU4).u32(0x12345678)
				}
			}
			c = c.block(data)
		}
		b = b.bytes(wrap(c.bytes(f.cie)))

		head := uint64(4)
		if f.wide {
			head = 12
		}
		fdeAt := uint64(len(b))
		fdes = append(fdes, at+fdeAt)
		var d asm
		if debug {
			d = num(d, cieAt)
		} else {
			d = d.u32(uint32(fdeAt + head - cieAt))
		}
		d = pointerTo(d, f.enc, f.lo, at+fdeAt+head+uint64(len(d)))
		switch objfile.PtrSize(f.enc, 8) {
		case 2:
			d = d.u16(uint16(f.size))
		case 4:
			d = d.u32(uint32(f.size))
		case 8:
			d = d.u64(f.size)
		default:
			d = d.uleb(f.size)
		}
		if f.aug != "" && f.aug[0] == 'z' {
			d = d.uleb(0)
		}
		b = b.bytes(wrap(d.bytes(f.fde)))
	}
	return b, fdes
}

// pointerTo appends a pointer to v, which itself lies at here.
func pointerTo(b asm, enc uint8, v, here uint64) asm {
	switch enc & 0x70 {
	case objfile.PtrPCRel:
		v -= here
	case objfile.PtrDataRel:
		v -= synthHdr
	}
	switch objfile.PtrSize(enc, 8) {
	case 2:
		return b.u16(uint16(v))
	case 4:
		return b.u32(uint32(v))
	case 8:
		return b.u64(v)
	}
	if enc&0x0f == objfile.PtrSLEB {
		return b.sleb(int64(v))
	}
	return b.uleb(v)
}

// newSynth makes an image with fns in .eh_frame, with a header whose table is
// encoded by enc; objfile.PtrOmit: without a table.
func newSynth(a *arch.Arch, enc uint8, fns []function) *synth {
	m := &synth{arch: a, tables: map[string]arch.Span{}, span: arch.Span{Lo: synthBase, Hi: synthEnd}}
	b, fdes := frames(a, synthEH, false, fns)
	m.add(synthEH, b.u32(0))
	h := asm{}.u8(1, objfile.PtrPCRel|objfile.PtrS4, objfile.PtrU4, enc)
	rel := int64(synthEH - (synthHdr + 4))
	h = h.u32(uint32(rel))
	h = h.u32(uint32(len(fns)))
	if enc != objfile.PtrOmit {
		for i, f := range fns {
			h = pointerTo(h, enc, f.lo, synthHdr+uint64(len(h)))
			h = pointerTo(h, enc, fdes[i], synthHdr+uint64(len(h)))
		}
	}
	m.add(synthHdr, h)
	m.add(synthBase, make([]byte, 0x1000))
	m.tables[".eh_frame_hdr"] = arch.Span{Lo: synthHdr, Hi: synthHdr + arch.Addr(len(h))}
	return m
}

// newDebug makes an image with fns in .debug_frame only.
func newDebug(a *arch.Arch, fns []function) *synth {
	m := &synth{arch: a, span: arch.Span{Lo: synthBase, Hi: synthEnd}}
	b, _ := frames(a, 0, true, fns)
	m.files = map[string][]byte{".debug_frame": b}
	m.add(synthBase, make([]byte, 0x1000))
	return m
}
