package objfile

import (
	"bytes"
	"errors"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

// TestReadPE reads headers in memory as ParsePE reads those of the file. Cut
// anywhere, they are missing, and where is said; claims that no file makes are
// refused before they are followed.
func TestReadPE(t *testing.T) {
	const base, nt, headers = 0x7f0000000000, 0x80, 0x80 + 24 + 240 + 2*peSectionSize
	data := make([]byte, headers)
	copy(data, "MZ")
	data[60] = nt
	pe := data[nt:]
	copy(pe, "PE\x00\x00")
	pe[6], pe[20], pe[21] = 2, 240, 0
	pe[24], pe[25], pe[24+108] = 0x0b, 0x02, 16
	copy(pe[24+240:], ".text")
	copy(pe[24+240+peSectionSize:], ".data")
	want, err := ParsePE(data)
	if err != nil || len(want.Sections) != 2 {
		t.Fatalf("%+v, %v", want, err)
	}
	got, missing, err := ReadPE(memtest.Piece[arch.Addr]{At: base, Data: append(bytes.Clone(data), make([]byte, 100)...)}, base)
	if err != nil || missing != 0 || len(got.Sections) != 2 || got.Sections[1] != want.Sections[1] || !bytes.Equal(got.Raw, want.Raw) {
		t.Errorf("%+v, %v, %v", got, missing, err)
	}
	for n := range headers {
		at := arch.Addr(base)
		if n >= 64 {
			at += nt
		}
		if h, missing, err := ReadPE(memtest.Piece[arch.Addr]{At: base, Data: data[:n]}, base); h != nil || missing != at || err != nil {
			t.Fatalf("cut to %d bytes: %+v, missing %v, want %v, %v", n, h, missing, at, err)
		}
	}
	for what, change := range map[string]func(b []byte){
		"no DOS header":         func(b []byte) { b[0] = 'N' },
		"a PE header far away":  func(b []byte) { b[62] = 1; copy(b[1<<16+nt:], b[nt:headers]) },
		"too many sections":     func(b []byte) { b[nt+6] = maxPESections + 1 },
		"no PE header":          func(b []byte) { b[nt] = 'Q' },
		"an unknown kind of PE": func(b []byte) { b[nt+24] = 0 },
	} {
		b := append(bytes.Clone(data), make([]byte, 1<<18)...)
		change(b)
		var format *FormatError
		if h, missing, err := ReadPE(memtest.Piece[arch.Addr]{At: base, Data: b}, base); h != nil || missing != 0 || !errors.As(err, &format) {
			t.Errorf("%s: %+v, %v, %v", what, h, missing, err)
		}
	}
}
