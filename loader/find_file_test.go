package loader

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// noted makes an ELF file of x86-64 that holds nothing but a build-id.
func noted(id string) []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 3)  // ET_DYN
	le.PutUint16(b[18:], 62) // EM_X86_64
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	p := b[64:]
	le.PutUint32(p, 4) // PT_NOTE
	le.PutUint64(p[8:], 120)
	le.PutUint64(p[32:], uint64(16+len(id)))
	b = le.AppendUint32(b, 4)
	b = le.AppendUint32(b, uint32(len(id)))
	b = le.AppendUint32(b, 3) // NT_GNU_BUILD_ID
	return append(append(b, "GNU\x00"...), id...)
}

// One file is found by the identity that it holds, whatever its name, and by its
// name, so that the reader learns of a file of another build.
func TestFileFinder(t *testing.T) {
	dir := t.TempDir()
	lib := filepath.Join(dir, "renamed.so")
	for name, b := range map[string][]byte{"renamed.so": noted("\xaa\xbb\xcc\xdd"), "text": []byte("text"), "short": {0x7f}} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := FileFinder(lib)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id    ImageID
		path  string
		found bool
	}{
		{ImageID{Name: "libc.so.6", BuildID: "aabbccdd"}, "/lib/libc.so.6", true},
		{ImageID{Name: "libc.so.6", BuildID: "aabbccde"}, "/lib/libc.so.6", false},
		{ImageID{Name: "libc.so.6"}, "/lib/libc.so.6", false},
		{ImageID{Name: "renamed.so", BuildID: "1234"}, "/lib/renamed.so", true},
		{ImageID{Name: "libc.so.6"}, "/lib/Renamed.so", true},
		{ImageID{}, "", false},
	} {
		if got := f.Find(c.id, c.path); slices.Contains(got, lib) != c.found {
			t.Errorf("%+v at %s: %q", c.id, c.path, got)
		}
	}
	for _, name := range []string{"text", "short", "absent"} {
		if _, err := FileFinder(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is taken for an image", name)
		}
	}
}
