package nativeaot

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
)

// A program of NativeAOT has metadata for what it may reflect on, the types of its
// exceptions among them: a table leads from a MethodTable to a record of the type,
// and that to its name, its namespace and the type that it is nested in. Section
// __modules points to the header that lists where they lie.
//
// Formats: src/coreclr/tools/Common/Internal/Runtime/ModuleHeaders.cs and
// MetadataBlob.cs (sections); src/coreclr/tools/Common/Internal/NativeFormat/
// NativeFormatReader.cs (hash tables, numbers); and, for records,
// src/coreclr/tools/Common/Internal/Metadata/NativeFormat/NativeFormatReaderGen.cs
// of .NET 9. They are no contract. So names are believed only if they call the
// class that all exceptions derive from System.Exception, and its own base
// System.Object.
const (
	modulesTable = "__modules"

	headSignature = 0x00525452 // "RTR"
	headCount     = 12         // u16
	headSize      = 16
	headRow       = 24 // number, flags, begin, end
	rowBegin      = 8
	rowEnd        = 16
	maxHeadRows   = 256

	sectionTypes    = 301 // a hash table: fixup, handle
	sectionFixups   = 308 // 4-byte distances to MethodTables
	sectionMetadata = 313

	handleType      = 0x3a // HandleType.TypeDefinition
	handleNamespace = 0x2f // HandleType.NamespaceDefinition
	handleKind      = 24   // of a handle in the table: its type, above the offset
	handleBits      = 8    // of a handle in a record: the offset is above its type

	maxTable  = 1 << 24 // bytes of a table
	maxTypes  = 1 << 20
	maxChain  = 32 // namespaces and types within one another
	maxRecord = 64 // bytes of a record up to the last field that is read
	maxText   = 1 << 10
)

// typeRecords are where the records of types lie, by MethodTable.
type typeRecords struct {
	once    bin.Once
	handles map[arch.Addr]uint32
}

// recordOf returns the handle of the record of a type; 0 if there is none, or if
// what leads to it is not at hand.
func (r *Runtime) recordOf(table arch.Addr) uint32 {
	t := &r.types
	t.once.Do(func() {
		handles := map[arch.Addr]uint32{}
		types, fixups := r.section(sectionTypes), r.section(sectionFixups)
		b, fix := r.bytes(types), r.bytes(fixups)
		eachVertex(b, func(at int) {
			i, n, ok1 := unsigned(b[at:])
			handle, _, ok2 := unsigned(b[min(at+n, len(b)):])
			f := bin.Slice(fix, 4*uint64(i), 4)
			if ok1 && ok2 && f != nil && len(handles) < maxTypes {
				a := fixups.Lo + 4*arch.Addr(i)
				handles[a+arch.Addr(int32(binary.LittleEndian.Uint32(f)))] = handle
			}
		})
		t.handles = handles
	})
	return t.handles[table]
}

// coreLibrary is the assembly that has the version of the runtime.
const coreLibrary = "System.Private.CoreLib"

// The metadata begins with its magic number and the assemblies that it is of: how
// many, and where the record of each is.
const (
	metadataMagic = 0xdeaddffd
	maxAssemblies = 1 << 12
)

// version returns the first two numbers of the version of the runtime, those of its
// core library; "" if they are not at hand.
func (r *Runtime) version() string {
	b := r.metadataAt(0, 4)
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != metadataMagic {
		return ""
	}
	off := uint32(4)
	count, ok := r.numberAt(&off)
	for range min(count, maxAssemblies) {
		at, ok2 := r.numberAt(&off)
		// Flags, name, algorithm of its hash, version.
		f, ok3 := r.record(at, 5)
		if !ok || !ok2 || !ok3 {
			break
		}
		if r.textAt(f[1]) == coreLibrary {
			return fmt.Sprintf("%d.%d", f[3], f[4])
		}
	}
	return ""
}

// numberAt reads a number of the metadata and goes behind it.
func (r *Runtime) numberAt(off *uint32) (v uint32, ok bool) {
	b := r.metadataAt(*off, 5)
	v, n, ok := unsigned(b)
	*off += uint32(n)
	return v, ok
}

// section returns where a section of the program's header lies.
func (r *Runtime) section(number uint32) (s arch.Span) {
	modules, ok := r.Image.Table(modulesTable)
	if !ok {
		return s
	}
	at, _ := r.mem.Word(modules.Lo)
	head := r.mem.View(arch.Addr(at), headSize)
	if head == nil || binary.LittleEndian.Uint32(head) != headSignature {
		return s
	}
	for i := range min(int(binary.LittleEndian.Uint16(head[headCount:])), maxHeadRows) {
		row := r.mem.View(field(arch.Addr(at), headSize+i*headRow), headRow)
		if row == nil {
			break
		}
		if binary.LittleEndian.Uint32(row) == number {
			s = arch.Span{Lo: arch.Addr(binary.LittleEndian.Uint64(row[rowBegin:])), Hi: arch.Addr(binary.LittleEndian.Uint64(row[rowEnd:]))}
			break
		}
	}
	if s.Hi <= s.Lo || !r.span.Has(s.Lo) || s.Hi > r.span.Hi {
		return arch.Span{}
	}
	return s
}

// bytes returns a table, nil if it is not at hand.
func (r *Runtime) bytes(s arch.Span) []byte {
	if s.Hi-s.Lo > maxTable || s.Hi == s.Lo {
		return nil
	}
	return r.mem.View(s.Lo, int(s.Hi-s.Lo))
}

// eachVertex yields where the vertices of a hash table lie.
func eachVertex(b []byte, yield func(at int)) {
	if len(b) == 0 {
		return
	}
	size, buckets := 1<<(b[0]&3), uint64(1)<<min(b[0]>>2, 31)
	index := func(i uint64) (at uint64, ok bool) {
		p := bin.Slice(b, 1+i*uint64(size), uint64(size))
		for k := range p {
			at |= uint64(p[k]) << (8 * k)
		}
		return 1 + at, p != nil && size <= 4
	}
	left := maxTypes
	for i := range min(buckets, uint64(len(b))) {
		at, ok1 := index(i)
		end, ok2 := index(i + 1)
		if !ok1 || !ok2 || end > uint64(len(b)) {
			return
		}
		for at++; at < end && left > 0; left-- { // behind a byte of its hash
			d, n, ok := signed(b[at:])
			if v := int64(at) + int64(d); ok && v >= 0 && v < int64(len(b)) {
				yield(int(v))
			}
			at += uint64(max(n, 1)) + 1
		}
	}
}

// metadataName returns the name of the class of a MethodTable: Namespace.Outer+Inner;
// "" if it is not known.
func (r *Runtime) metadataName(table arch.Addr) string {
	h := r.recordOf(table)
	if h>>handleKind != handleType {
		return ""
	}
	return r.typeAt(h&(1<<handleKind-1), maxChain)
}

// typeAt returns the name of the type whose record lies off bytes into the metadata.
func (r *Runtime) typeAt(off uint32, left int) string {
	// Flags, base, namespace, name, size, packing, enclosing type.
	f, ok := r.record(off, 7)
	if !ok || left == 0 {
		return ""
	}
	name := r.textAt(f[3])
	outer, sep := "", "."
	if f[6] != 0 {
		outer, sep = r.typeAt(f[6], left-1), "+"
	} else {
		outer, ok = r.namespaceAt(f[2], left-1)
	}
	switch {
	case name == "" || !ok || f[6] != 0 && outer == "":
		return ""
	case outer == "":
		return name
	}
	return outer + sep + name
}

// namespaceAt returns the full name of a namespace, which is empty for the root.
func (r *Runtime) namespaceAt(off uint32, left int) (name string, ok bool) {
	for ; left > 0; left-- {
		// Parent, name.
		f, ok := r.record(off, 2)
		if !ok {
			return "", false
		}
		if f[1] == 0 { // the root, whose parent is an assembly
			return name, f[0]&(1<<handleBits-1) != handleNamespace
		}
		text := r.textAt(f[1])
		if text == "" || f[0]&(1<<handleBits-1) != handleNamespace {
			return "", false
		}
		if name != "" {
			text += "." + name
		}
		name, off = text, f[0]>>handleBits
	}
	return "", false
}

// record returns the first n numbers of a record of the metadata, or of as many as
// the bytes up to its end have.
func (r *Runtime) record(off uint32, n int) (f [7]uint32, ok bool) {
	b := r.metadataAt(off, maxRecord)
	for i := range n {
		v, size, ok := unsigned(b)
		if !ok {
			return f, false
		}
		f[i], b = v, b[size:]
	}
	return f, true
}

// metadataAt returns at most n bytes of the metadata, those that are there.
func (r *Runtime) metadataAt(off uint32, n int) []byte {
	s := r.metadata
	a := s.Lo + arch.Addr(off)
	if !s.Has(a) {
		return nil
	}
	return r.mem.View(a, min(n, int(s.Hi-a)))
}

// textAt returns a name of the metadata: its size, and UTF-8; "" if it is not one.
func (r *Runtime) textAt(off uint32) string {
	b := r.metadataAt(off, maxRecord)
	n, size, ok := unsigned(b)
	if !ok || n > maxText {
		return ""
	}
	if b = r.metadataAt(off+uint32(size), int(n)); len(b) != int(n) || !utf8.Valid(b) || strings.ContainsFunc(string(b), control) {
		return ""
	}
	return string(b)
}

// control reports whether c is a control character, which no name has.
func control(c rune) bool { return c < ' ' || c == 0x7f }

// unsigned reads a number of the native format: the ones that it begins with, from
// the lowest bit on, say how many bytes follow.
func unsigned(b []byte) (v uint32, n int, ok bool) {
	v, n, _ = number(b)
	return v, n, n != 0
}

// signed is unsigned for a number with a sign.
func signed(b []byte) (v int32, n int, ok bool) {
	u, n, bits := number(b)
	return int32(u<<(32-bits)) >> (32 - bits), n, n != 0
}

// number reads the bits of a number, how many bytes it takes and how many bits it
// has; 0 bytes if b ends before it does.
func number(b []byte) (v uint32, n, bits int) {
	if len(b) == 0 {
		return 0, 0, 0
	}
	for n = 1; n < 5 && b[0]>>(n-1)&1 != 0; n++ {
	}
	if len(b) < n {
		return 0, 0, 0
	}
	if n == 5 {
		return binary.LittleEndian.Uint32(b[1:]), n, 32
	}
	for i := range n {
		v |= uint32(b[i]) << (8 * i)
	}
	return v >> n, n, 7 * n
}
