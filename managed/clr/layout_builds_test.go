package clr

import (
	"bytes"
	"debug/elf"
	"debug/pe"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
)

var (
	update = flag.Bool("update", false, "add the runtimes at hand to the table of known builds")
	extra  = flag.String("runtimes", "", "more files with runtimes for the table, a list as $PATH is one")
)

// TestKnownBuilds reads every runtime among the recorded images with debug/elf or
// debug/pe, and holds the table's row of it against what the file says.
func TestKnownBuilds(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(corpus.Path(t, "images"), "elf", "*", "*"))
	dlls, _ := filepath.Glob(filepath.Join(corpus.Path(t, "images"), "pe", "coreclr.dll", "*", "*"))
	files = append(append(files, dlls...), filepath.SplitList(*extra)...)
	var rows []*build
	texts := map[string][]byte{}
	for _, file := range files {
		b, text, err := readBuild(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if b == nil || slices.ContainsFunc(rows, func(o *build) bool { return o.ID == b.ID }) {
			continue // of no runtime; or two applications made of one host
		}
		for n := 0; b.Layout != ""; n++ {
			if n > 0 {
				b.Layout = strings.TrimSuffix(b.Layout, ".json") + "b.json"
			}
			if old, ok := texts[b.Layout]; !ok || bytes.Equal(old, text) {
				texts[b.Layout] = text
				break
			}
		}
		rows = append(rows, b)
	}
	if *update {
		writeBuilds(t, rows, texts)
		return
	}
	known, err := knownBuilds()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range rows {
		got := known[want.ID]
		if got == nil {
			t.Errorf("%s %s (%s): no row", want.Image, want.Version, want.ID)
			continue
		}
		if got.Version != want.Version || got.Commit != want.Commit || !slices.Equal(got.Pointers, want.Pointers) {
			t.Errorf("%s: the table has %+v, the file %+v", want.ID, got, want)
		}
		if want.Layout == "" && got.Layout == "" {
			continue
		}
		if text, _ := layouts.ReadFile("layouts/" + got.Layout); !bytes.Equal(text, texts[want.Layout]) {
			t.Errorf("%s: layouts/%s is not what the file holds", want.ID, got.Layout)
		}
		if _, err := got.contract(0x10000); err != nil {
			t.Errorf("%s: %v", want.ID, err)
		}
	}
}

// writeBuilds replaces the table's rows of the given builds, and keeps others.
func writeBuilds(t *testing.T, rows []*build, texts map[string][]byte) {
	known, err := knownBuilds()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range known {
		if !slices.ContainsFunc(rows, func(o *build) bool { return o.ID == b.ID }) {
			rows = append(rows, b)
		}
	}
	slices.SortFunc(rows, func(a, b *build) int { return strings.Compare(a.Version+a.ID, b.Version+b.ID) })
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", " ")
	if err := enc.Encode(rows); err != nil {
		t.Fatal(err)
	}
	texts["builds.json"] = buf.Bytes()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join("layouts", name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("written; run again without -update, which sees the new files")
}

// readBuild returns the row that a file would have, and the text of its
// descriptor; nil if it holds no runtime whose contract this package reads.
func readBuild(file string) (*build, []byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	if strings.HasSuffix(file, ".zst") {
		d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return nil, nil, err
		}
		defer d.Close()
		if data, err = d.DecodeAll(data, nil); err != nil {
			return nil, nil, err
		}
	}
	if bytes.HasPrefix(data, []byte("MZ")) {
		return readBuildPE(data)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	syms, err := f.DynamicSymbols()
	if err != nil {
		return nil, nil, nil // a static executable has none
	}
	exports := func(name string) int {
		return slices.IndexFunc(syms, func(s elf.Symbol) bool { return s.Name == name && s.Section != elf.SHN_UNDEF })
	}
	i := exports(descriptorSymbol)
	if i < 0 {
		if exports(dacTableSymbol) < 0 {
			return nil, nil, nil
		}
		b, err := versionOnly(data)
		if b != nil {
			b.ID, b.Image = buildID(f), "libcoreclr.so"
		}
		return b, nil, err
	}
	b, text, err := readContract(relocated(f, data), syms[i].Value, data, "linux", map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine])
	if b == nil {
		return nil, nil, err
	}
	b.ID, b.Image = buildID(f), "libcoreclr.so"
	if f.Type == elf.ET_DYN && slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		b.Image = "host of single-file applications"
	}
	return b, text, nil
}

// readBuildPE is readBuild for a PE file, whose pointers count from its preferred
// base.
func readBuildPE(data []byte) (*build, []byte, error) {
	f, err := pe.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	head := f.OptionalHeader.(*pe.OptionalHeader64)
	le := binary.LittleEndian
	img := func(rva uint64, n int) []byte {
		for _, s := range f.Sections {
			if off := rva - uint64(s.VirtualAddress); rva >= uint64(s.VirtualAddress) && off+uint64(n) <= uint64(s.Size) {
				return bytes.Clone(data[uint64(s.Offset)+off:][:n])
			}
		}
		panic(fmt.Sprintf("nothing at %#x", rva))
	}
	// IMAGE_EXPORT_DIRECTORY: number of names, and the tables of functions, names
	// and ordinals.
	dir := img(uint64(head.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_EXPORT].VirtualAddress), 40)
	funcs, names, ordinals := uint64(le.Uint32(dir[28:])), uint64(le.Uint32(dir[32:])), uint64(le.Uint32(dir[36:]))
	for i := range uint64(le.Uint32(dir[24:])) {
		name := uint64(le.Uint32(img(names+4*i, 4)))
		if string(img(name, len(descriptorSymbol)+1)) != descriptorSymbol+"\x00" {
			continue
		}
		ordinal := uint64(le.Uint16(img(ordinals+2*i, 2)))
		at := uint64(le.Uint32(img(funcs+4*ordinal, 4)))
		// Words that are addresses count from the preferred base.
		linked := func(at uint64, n int) []byte {
			b := img(at, n)
			for off := 0; off+8 <= n; off += 8 {
				if v := le.Uint64(b[off:]) - head.ImageBase; v < uint64(head.SizeOfImage) {
					le.PutUint64(b[off:], v)
				}
			}
			return b
		}
		b, text, err := readContract(linked, at, data, "windows", map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine])
		if b != nil {
			b.Image, b.ID = "coreclr.dll", buildKey(&loader.ImageID{Timestamp: f.TimeDateStamp, Size: head.SizeOfImage})
		}
		return b, text, err
	}
	return nil, nil, nil
}

// readContract returns the row of a build but for what it is known by, and the text
// of the descriptor at at; no text for a descriptor that is too small to walk with,
// as that of .NET 9.
func readContract(img func(at uint64, n int) []byte, at uint64, data []byte, os, cpu string) (*build, []byte, error) {
	head := img(at, descriptorSize)
	size, count := binary.LittleEndian.Uint32(head[descriptorTextSize:]), binary.LittleEndian.Uint32(head[descriptorPtrCount:])
	text := img(binary.LittleEndian.Uint64(head[descriptorText:]), int(size))
	b, err := versionOnly(data)
	if err != nil || !bytes.Contains(text, []byte(`"ExecutionManager"`)) {
		return b, nil, err
	}
	ptrs := img(binary.LittleEndian.Uint64(head[descriptorPtrs:]), int(8*count))
	for ; len(ptrs) > 0; ptrs = ptrs[8:] {
		b.Pointers = append(b.Pointers, fmt.Sprintf("%#x", binary.LittleEndian.Uint64(ptrs)))
	}
	b.Layout = fmt.Sprintf("net%s-%s-%s.json", strings.TrimSuffix(b.Version[:2], "."), os, cpu)
	return b, bytes.TrimRight(text, "\x00"), nil
}

// versionOnly returns a row that says which build it is.
func versionOnly(data []byte) (*build, error) {
	b := &build{}
	if b.Version, b.Commit = fileVersion(data); b.Version == "" {
		return nil, fmt.Errorf("holds no version")
	}
	return b, nil
}

// fileVersion returns the version and the commit that a file holds: as text, or the
// version alone as the VS_FIXEDFILEINFO of a PE file's resources.
func fileVersion(data []byte) (version, commit string) {
	if _, text, ok := bytes.Cut(data, []byte(versionMark)); ok {
		return parseVersion(text)
	}
	_, info, ok := bytes.Cut(data, []byte("\xbd\x04\xef\xfe"))
	if !ok {
		return "", ""
	}
	number := func(at int) uint16 { return binary.LittleEndian.Uint16(info[at:]) }
	return fmt.Sprintf("%d.%d.%d", number(6), number(4), number(10)/100), ""
}

// buildID returns the build-id of f in hex.
func buildID(f *elf.File) string {
	const header = 16 // of the note, with the name "GNU"
	if s := f.Section(".note.gnu.build-id"); s != nil {
		if note, err := s.Data(); err == nil && len(note) > header {
			return hex.EncodeToString(note[header:])
		}
	}
	return ""
}

// relocated reads an image at link addresses, with its relative relocations
// applied as the dynamic linker would at bias 0.
func relocated(f *elf.File, data []byte) func(at uint64, n int) []byte {
	mem := bytes.Clone(data)
	off := func(at uint64) int {
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && at >= p.Vaddr && at < p.Vaddr+p.Filesz {
				return int(at - p.Vaddr + p.Off)
			}
		}
		return -1
	}
	relative := map[elf.Machine]uint32{elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE)}[f.Machine]
	for _, s := range f.Sections {
		if s.Type != elf.SHT_RELA {
			continue
		}
		rela, _ := s.Data()
		for ; len(rela) >= 24; rela = rela[24:] {
			if at := off(binary.LittleEndian.Uint64(rela)); uint32(binary.LittleEndian.Uint64(rela[8:])) == relative && at >= 0 {
				copy(mem[at:], rela[16:24])
			}
		}
	}
	return func(at uint64, n int) []byte {
		o := off(at)
		return mem[o : o+n]
	}
}

// TestKnows: a runtime found by its table of variables is believed if most of its
// threads are threads of the dump. One may be of a thread that has ended.
func TestKnows(t *testing.T) {
	for _, test := range []struct {
		ids  []uint64 // the dump has thread 100
		want bool
	}{{[]uint64{100}, true}, {[]uint64{100, 0, 0}, true}, {[]uint64{100, 100, 555}, true}, {[]uint64{100, 555}, false}, {[]uint64{0}, false}, {nil, false}} {
		m := newFakeTypes(t)
		model := fakeRuntime(t, nil)
		m.heap(model, 0x800, []int{32}, []int{64})
		l := &model.threadLayout
		store, _ := model.data.pointer("ThreadStore")
		const list, threads = arch.Addr(0x6000_0000), arch.Addr(0x6100_0000)
		m.word(store, list)
		m.put(field(list, l.StoreCount), uint64(len(test.ids)), 4)
		prev := field(list, l.StoreFirst)
		for i, id := range test.ids {
			at := threads + arch.Addr(i)<<12
			for off := arch.Addr(0); off < 0x400; off += 8 {
				m.word(at+off, 0)
			}
			m.put(field(at, l.OSID), id, 8)
			m.word(prev, field(at, l.Link))
			prev = field(at, l.Link)
		}
		m.word(prev, 0)
		if r := fakeRuntime(t, m.core(t)); r.knows() != test.want {
			ts, warns := r.Threads()
			t.Errorf("threads %v: %v; %d read, %v", test.ids, !test.want, len(ts), warns)
		}
	}
}
