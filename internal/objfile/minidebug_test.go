package objfile

import (
	"bytes"
	"testing"

	"github.com/ulikunitz/xz"
)

func TestUnpackXZ(t *testing.T) {
	want := bytes.Repeat([]byte("a symbol table, or little else. "), 5000)
	var packed bytes.Buffer
	w, err := xz.WriterConfig{BlockSize: 1 << 16}.NewWriter(&packed) // many blocks
	if err != nil {
		t.Fatal(err)
	}
	w.Write(want)
	w.Close()
	got, err := unpackXZ(packed.Bytes())
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("unpacked %d bytes of %d, error %v", len(got), len(want), err)
	}
	for n := range packed.Len() {
		unpackXZ(packed.Bytes()[:n])
	}
}

func FuzzUnpackXZ(f *testing.F) {
	var packed bytes.Buffer
	w, _ := xz.NewWriter(&packed)
	w.Write([]byte("a symbol table"))
	w.Close()
	f.Add(packed.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) { unpackXZ(b) })
}
