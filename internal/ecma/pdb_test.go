package ecma

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

// pdbFixture returns a portable PDB.
func pdbFixture(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../../testdata/dumps/net10-hello/scenarios.pdb")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPDBTables(t *testing.T) {
	b := pdbFixture(t)
	m := open(t, b)
	if got := m.PDBID().String(); got != "D8BF742B57ED41C1AF8D5E2ABF5E2880 (stamp a10a37b6)" {
		t.Errorf("its identity is %s", got)
	}
	if id, err := ReadPDBID(memtest.Piece[arch.Addr]{At: 0x40, Data: b}, 0x40, uint32(len(b))); err != nil || id != m.PDBID() {
		t.Errorf("%v, %v", id, err)
	}
	if name, err := m.Document(1); err != nil || name != "/src/Scenarios.cs" {
		t.Errorf("document 1 is %q, %v", name, err)
	}
	for _, rid := range []uint32{0, m.Rows(Document) + 1} {
		if name, err := m.Document(rid); err == nil {
			t.Errorf("document %d is %q", rid, name)
		}
	}
	points := 0
	for rid := range m.Rows(MethodDebugInformation) {
		d, err := m.MethodDebug(rid + 1)
		if err != nil || d.Points != nil && d.Document == 0 {
			t.Errorf("method %d: %+v, %v", rid+1, d, err)
		}
		points += len(d.Points)
	}
	if points < 1000 {
		t.Errorf("%d bytes of sequence points", points)
	}
}

// Indexes into the assembly's own tables are as wide as its row counts demand,
// which only the #Pdb stream has: tables behind such a column lie elsewhere then.
func TestPDBWidths(t *testing.T) {
	b := bytes.Clone(pdbFixture(t))
	mem := memtest.Piece[arch.Addr]{At: 0, Data: b}
	streams, err := Streams(mem, 0, uint32(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	before := open(t, b)
	for _, s := range streams {
		if s.Name != "#Pdb" {
			continue
		}
		counts := b[s.Off+pdbHead:]
		for table := range Table(64) {
			if binary.LittleEndian.Uint64(b[s.Off+pdbHead-8:])>>table&1 == 0 {
				continue
			}
			if table == MethodDef {
				binary.LittleEndian.PutUint32(counts, 1<<16)
			}
			counts = counts[4:]
		}
	}
	after, err := Open(mem, 0, uint32(len(b)))
	if err == nil {
		t.Error("wide rows fit where narrow ones did")
	}
	const localScope = Table(0x32)
	if x, y := before.tables[localScope].size, after.tables[localScope].size; y != x+2 {
		t.Errorf("a row of LocalScope has %d bytes, and %d where methods have wide indexes", x, y)
	}
}

// What is no PDB, or a cut one, has no identity.
func TestNoPDB(t *testing.T) {
	b, _ := fixture(t)
	if id, err := ReadPDBID(memtest.Piece[arch.Addr]{Data: b}, 0, uint32(len(b))); err == nil {
		t.Errorf("metadata of an assembly is a PDB, %v", id)
	}
	b = pdbFixture(t)
	for n := range 140 {
		if id, err := ReadPDBID(memtest.Piece[arch.Addr]{Data: b[:n]}, 0, uint32(len(b))); err == nil {
			t.Errorf("%d bytes are a PDB, %v", n, id)
		}
	}
}
