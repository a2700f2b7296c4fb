package ecma

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/objfile"
)

// A PDBID tells the builds of a portable PDB apart: a GUID, and a stamp that the
// debug directory of its image has beside it (PortablePdb-Metadata.md, "#Pdb
// stream"; PE-COFF.md, "CodeView Debug Directory Entry", both of dotnet/runtime).
type PDBID struct {
	GUID  [16]byte // as it lies in files
	Stamp uint32
}

// String returns the GUID in upper-case hex without separators, and the stamp.
func (id PDBID) String() string {
	le, g := binary.LittleEndian, id.GUID[:]
	return fmt.Sprintf("%08X%04X%04X%X (stamp %08x)", le.Uint32(g), le.Uint16(g[4:]), le.Uint16(g[6:]), g[8:], id.Stamp)
}

// ReadPDBID returns the identity of the portable PDB that begins at at and has
// size bytes. The error says why it is none.
func ReadPDBID(r objfile.Reader, at arch.Addr, size uint32) (id PDBID, err error) {
	streams, err := Streams(r, at, size)
	for _, s := range streams {
		if s.Name == "#Pdb" {
			return readPDBID(r, at, heap{s.Off, s.Size})
		}
	}
	if err == nil {
		err = &Error{"metadata that is no portable PDB", at, false}
	}
	return id, err
}

func readPDBID(r objfile.Reader, at arch.Addr, s heap) (id PDBID, err error) {
	b := r.View(at+arch.Addr(s.off), pdbHead)
	if s.size < pdbHead || b == nil {
		return id, &Error{"the #Pdb stream", at + arch.Addr(s.off), s.size >= pdbHead}
	}
	copy(id.GUID[:], b)
	id.Stamp = binary.LittleEndian.Uint32(b[16:])
	return id, nil
}

// pdbHead is how many bytes the #Pdb stream has in front of its row counts: the
// identity, a token, and a bit for each table that it counts rows of.
const pdbHead = 32

// pdb reads the #Pdb stream.
func (m *Metadata) pdb(s heap) (err error) {
	if m.id, err = readPDBID(m.mem, m.at, s); err != nil {
		return err
	}
	a := m.at + arch.Addr(s.off)
	b := m.mem.View(a+pdbHead-8, 8)
	if b == nil {
		return &Error{"the #Pdb stream", a, true}
	}
	valid := binary.LittleEndian.Uint64(b)
	n := bits.OnesCount64(valid)
	if uint64(s.size) < pdbHead+4*uint64(n) {
		return &Error{"the row counts of the #Pdb stream", a, false}
	}
	counts := m.mem.View(a+pdbHead, 4*n)
	if counts == nil && n > 0 {
		return &Error{"the row counts of the #Pdb stream", a + pdbHead, true}
	}
	for t := range m.beside {
		if valid>>t&1 != 0 {
			m.beside[t] = binary.LittleEndian.Uint32(counts)
			counts = counts[4:]
		}
	}
	return nil
}

// PDBID returns the identity of a portable PDB; the zero value of other metadata.
func (m *Metadata) PDBID() PDBID { return m.id }

// A MethodDebug is a row of MethodDebugInformation.
type MethodDebug struct {
	Document uint32 // row of Document that all of the points are in; 0: Points says which
	Points   []byte // the sequence points blob; nil: the method has none
}

// MethodDebug returns what a portable PDB has of MethodDef row rid.
func (m *Metadata) MethodDebug(rid uint32) (d MethodDebug, err error) {
	r, err := m.row(MethodDebugInformation, rid)
	if err != nil {
		return d, err
	}
	d.Document = r.col(0)
	if at := r.col(1); at != 0 {
		d.Points, err = m.blob(at)
	}
	return d, err
}

// maxDocument bounds the name of a source file, in bytes.
const maxDocument = 1 << 14

// Document returns the name of the source file of Document row rid, a path in
// most cases, as the compiler wrote it: of parts, which are blobs, and the
// separator between them.
func (m *Metadata) Document(rid uint32) (string, error) {
	r, err := m.row(Document, rid)
	if err != nil {
		return "", err
	}
	b, err := m.blob(r.col(0))
	if err != nil {
		return "", err
	}
	bad := &Error{fmt.Sprintf("the name of document %d", rid), m.at, false}
	sep, n := utf8.DecodeRune(b)
	if n == 0 || sep == utf8.RuneError {
		return "", bad
	}
	var name strings.Builder
	for b = b[n:]; len(b) > 0; {
		at, n := Compressed(b)
		if n == 0 || name.Len() > maxDocument {
			return "", bad
		}
		b = b[n:]
		if at != 0 {
			part, err := m.blob(at)
			if err != nil {
				return "", err
			}
			if len(part) > maxDocument {
				return "", bad
			}
			name.Write(part)
		}
		if len(b) > 0 && sep != 0 {
			name.WriteRune(sep)
		}
	}
	if !utf8.ValidString(name.String()) {
		return "", bad
	}
	return name.String(), nil
}
