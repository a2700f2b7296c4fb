package stacks

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A Dump says what kind of dump it is, and of which process.
type Dump struct {
	Path     string
	Format   string // "elf-core" or "minidump"
	OS       string // "linux" or "windows"
	Arch     string // as GOARCH spells it
	PID      int    // 0: not known
	Crash    *Crash // nil: the dump does not say that the process crashed
	Runtimes []Runtime
}

// A Crash is the signal (Linux) or exception (Windows) that the dump was made for.
type Crash struct {
	TID     uint32
	Signal  uint32 // signal number or exception code
	Code    int32  // si_code
	Address arch.Addr
	HasAddr bool // the system told the address that could not be accessed
}

// A Runtime is a managed runtime in the process.
type Runtime struct {
	Kind    string // "coreclr", or that of a runtime in managed.Options
	Version string // "" if not known
	Image   string // name of the image that holds it; "" if not known
	How     string // where the layouts of its structures come from: "descriptor", "table" or "descriptor and table"
	Commit  string // of the sources that it was built from, in hex; "" if not known
	// Lacks is what would be read of it and is not known, as "Thread.Frame".
	Lacks []string
}

// An Image is a file mapped into the process.
type Image struct {
	Name  string
	Path  string // as the dump has it
	ID    string // build id in hex, or timestamp and size as symbol servers write them
	Span  arch.Span
	Bytes string // where its bytes come from: "dump", "file" or "none"; "" if not known
}

// Dump describes the dump.
func (s *Stacks) Dump() Dump {
	p := s.session.Process
	d := Dump{Path: p.Path, Format: p.Format, OS: p.ABI.OS, Arch: p.Arch.Name, PID: p.PID}
	if c := p.Crash; c != nil {
		d.Crash = &Crash{TID: c.Thread, Signal: c.Signal, Code: c.Code, Address: c.Address, HasAddr: c.HasAddr}
	}
	for _, rt := range s.session.Runtimes {
		info := rt.Info()
		r := Runtime{Kind: info.Kind, Version: info.Version, How: info.How, Commit: info.Commit, Lacks: info.Lacks}
		if info.Image != nil {
			r.Image = info.Image.ID.Name
		}
		d.Runtimes = append(d.Runtimes, r)
	}
	return d
}

// Images describes the images by address. It looks for the file of each, which
// takes longer than the stacks of a small dump: whether a walk happened to need
// the file must not decide what is said of the image.
func (s *Stacks) Images() []Image {
	out := make([]Image, len(s.session.Process.Images))
	for i, m := range s.session.Process.Images {
		out[i] = Image{Name: m.ID.Name, Path: m.Path, ID: imageID(m), Span: m.Span()}
		s.session.Process.GuardRetry(func() {
			m.File()
			out[i].Bytes = m.Bytes()
		})
	}
	return out
}

// imageID spells the identity of an image: the build id of ELF; for PE what
// symbol servers use as the folder's name, else the module version id.
func imageID(m *loader.Image) string {
	switch id := &m.ID; {
	case id.BuildID != "":
		return id.BuildID
	case id.Timestamp != 0 || id.Size != 0:
		return fmt.Sprintf("%08X%x", id.Timestamp, id.Size)
	default:
		return id.MVID
	}
}
