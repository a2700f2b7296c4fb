package stacks

import (
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/pdb"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/code"
)

// A lineTable has the PDBs of the modules whose methods were described.
type lineTable struct {
	p    *loader.Process
	pdbs sync.Map // *modulePDB by the module's base
}

// A modulePDB is the PDB of one module, opened when the first line is asked for.
type modulePDB struct {
	*loader.PDB // nil: the module has none, or it is not known which
	once        bin.Once
	file        *pdb.File // nil: none that can be read was found
}

// of returns the PDB of the module whose image lies at base.
func (t *lineTable) of(base arch.Addr) *modulePDB {
	if m, ok := t.pdbs.Load(base); ok {
		return m.(*modulePDB)
	}
	m, _ := t.pdbs.LoadOrStore(base, &modulePDB{PDB: t.p.PDB(base)})
	return m.(*modulePDB)
}

// open returns what the PDB says, nil if there is none.
func (m *modulePDB) open() *pdb.File {
	if m.PDB == nil {
		return nil
	}
	m.once.Do(func() {
		if len(m.Bytes()) > 0 {
			m.file, _ = pdb.Open(m.Bytes)
		}
	})
	return m.file
}

// line fills the source file and the line of o, which stands at an IL offset of a
// method. lacks is the PDB that would have had them, where it was not found.
func (t *lineTable) line(o *Place, m *code.Method) (lacks *loader.PDB) {
	if m.ModuleBase == 0 || m.Token == 0 || o.Method.ILOffset < 0 {
		return nil
	}
	p := t.of(m.ModuleBase)
	f := p.open()
	if f == nil {
		if p.PDB == nil || len(p.Bytes()) > 0 { // there is one, and it is broken
			return nil
		}
		return p.PDB
	}
	// What is wrong with a PDB leaves lines out, as a PDB without these does.
	o.File, o.Line, _ = f.Line(m.Token&(1<<24-1), uint32(o.Method.ILOffset))
	return nil
}
