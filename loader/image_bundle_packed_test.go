package loader

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seamwalk/seam/internal/objfile"
)

// deflated packs b, with zlib's header or without one.
func deflated(b []byte, header bool) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	if w, _ = flate.NewWriter(&out, flate.BestCompression); header {
		w = zlib.NewWriter(&out)
	}
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// A compressed file of a bundle is unpacked if it is what the manifest says, and
// nothing is unpacked that is not.
func TestUnpack(t *testing.T) {
	text := bytes.Repeat([]byte("assembly "), 1000)
	size := uint64(len(text))
	raw, zipped := deflated(text, false), deflated(text, true)
	bundle := append(append([]byte("host"), raw...), zipped...)
	at, n := uint64(4), uint64(len(raw))
	for _, c := range []struct {
		what string
		f    bundleFile
		want string
	}{
		{"deflate", bundleFile{"a", at, size, n}, ""},
		{"zlib", bundleFile{"a", at + n, size, uint64(len(zipped))}, ""},
		{"beyond the file", bundleFile{"a", at, size, 1 << 20}, "not all in the file"},
		{"far beyond the file", bundleFile{"a", ^uint64(0), size, 2}, "not all in the file"},
		{"longer than it claims", bundleFile{"a", at, size - 1, n}, "more bytes than it claims"},
		{"shorter than it claims", bundleFile{"a", at, size + 1, n}, "has 9000 bytes, and claims 9001"},
		{"cut", bundleFile{"a", at, size, n - 8}, "broken"},
		{"not deflate", bundleFile{"a", 0, size, n}, "broken"},
		{"a bomb", bundleFile{"a", at, maxUnpacked, n}, "more than deflate makes"},
		{"a large bomb", bundleFile{"a", at, 1 << 62, n}, "more than the limit"},
	} {
		var taken atomic.Uint64
		got, err := c.f.unpack(bundle, &taken)
		if c.want == "" && (err != nil || !bytes.Equal(got, text)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %d bytes, %v", c.what, len(got), err)
		}
	}
	var taken atomic.Uint64
	taken.Store(maxUnpackedAll)
	f := bundleFile{"a", at, size, n}
	if _, err := f.unpack(bundle, &taken); err == nil {
		t.Error("unpacked more than the limit of all files")
	}
}

// The begin of a compressed PE file is enough for its headers.
func TestPackedHead(t *testing.T) {
	pe := buildPE(0x300)
	for _, header := range []bool{false, true} {
		b := deflated(pe, header)
		f := bundleFile{"a", 0, uint64(len(pe)), uint64(len(b))}
		h, err := f.head(b)
		if want, _ := objfile.ParsePE(pe); err != nil || h.ImageSize != want.ImageSize {
			t.Errorf("zlib %v: %+v, %v", header, h, err)
		}
		if f.packed = 1 << 40; true {
			if _, err := f.head(b); err == nil {
				t.Error("headers of a file that is not in the bundle")
			}
		}
	}
}

// FuzzUnpack reads bytes as a bundle's manifest, and unpacks what it lists.
func FuzzUnpack(f *testing.F) {
	raw := deflated(buildPE(0x300), false)
	seed := binary.LittleEndian.AppendUint64(bytes.Clone(raw), uint64(len(raw)+40))
	seed = append(seed, bundleMarker...)
	seed = append(seed, 6, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0)
	seed = append(seed, make([]byte, 40)...)
	for _, v := range []uint64{0, 0x600, uint64(len(raw))} {
		seed = binary.LittleEndian.AppendUint64(seed, v)
	}
	seed = append(seed, "\x01\x05a.dll"...)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		progs := []objfile.Prog{{Type: 1, Flags: 6, Filesz: uint64(len(b))}}
		files := bundleFiles(b, progs)
		if len(files) > len(b)/18 {
			t.Errorf("%d files in %d bytes", len(files), len(b))
		}
		var taken atomic.Uint64
		for i := range files[:min(len(files), 8)] {
			if data, err := files[i].unpack(b, &taken); err == nil && uint64(len(data)) != files[i].size {
				t.Errorf("%d bytes, and it claims %d", len(data), files[i].size)
			}
			files[i].head(b)
		}
	})
}
