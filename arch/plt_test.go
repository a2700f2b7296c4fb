package arch

import (
	"slices"
	"testing"
)

// FuzzPLT: entries come in order, do not overlap, and lie in the table.
func FuzzPLT(f *testing.F) {
	f.Add([]byte("\xff\x35\x02\x00\x00\x00\xff\x25\x04\x00\x00\x00\x0f\x1f\x40\x00\xff\x25\x02\x2f\x00\x00\x68\x00\x00\x00\x00\xe9\xe0\xff\xff\xff"))
	f.Add([]byte("\xf3\x0f\x1e\xfa\x68\x03\x00\x00\x00\xf2\xe9\xe1\xff\xff\xff\x90\xf3\x0f\x1e\xfa\xf2\xff\x25\xad\x0b\x00\x00\x0f\x1f\x44\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xff\x68\x03"))
	f.Add([]byte("\x5f\x24\x03\xd5\xf0\x00\x00\x90\x11\xd2\x47\xf9\x10\x82\x3e\x91\x9f\x21\x03\xd5\x20\x02\x1f\xd6"))
	f.Fuzz(func(t *testing.T, code []byte) {
		const at = 0x1000
		for _, a := range All() {
			list := a.PLT(code, at)
			if !slices.IsSortedFunc(list, func(x, y PLTEntry) int { return int(int64(x.End) - int64(y.At)) }) {
				t.Errorf("%s: overlapping entries %+v", a.Name, list)
			}
			for _, e := range list {
				if e.At < at || e.At >= e.End || e.End > at+LinkAddr(len(code)) {
					t.Errorf("%s: entry %+v of %d bytes", a.Name, e, len(code))
				}
			}
		}
	})
}
