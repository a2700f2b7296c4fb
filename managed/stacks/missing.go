package stacks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/unwind"
)

// A Summary is what all stacks that were described so far have in common.
type Summary struct {
	Warnings []Warning // what the dump lacks, whichever stacks are looked at
	Missing  []Missing // which files would tell more of the stacks, those that would tell most first
	Counts   Counts
}

// A Warning is something that the dump should have.
type Warning struct {
	Code   string // of the list in docs/json.md
	Text   string
	Offset int64 // in the dump; -1: none
}

// A Missing is a file that was not found, and what that costs.
type Missing struct {
	Kind     MissingKind
	Name, ID string // of an image: see [Image]; of a PDB: see [loader.PDB]
	Stops    int    // stacks or parts of stacks that end for want of it
	Unnamed  int    // frames without a name for want of it
	Unlined  int    // frames without a line for want of it
}

// A MissingKind says what a missing file is.
type MissingKind string

const (
	MissingImage MissingKind = "image" // an ELF or PE file that was mapped
	MissingPDB   MissingKind = "pdb"   // a portable PDB, which has the lines of an assembly
)

// A pdbKey tells PDBs apart. An assembly that was loaded twice has one.
type pdbKey struct{ name, id string }

// Counts sum up stacks.
type Counts struct {
	Threads int
	Whole   int // of the threads: seen to their end, without a gap
	Gapped  int // of the threads: with a gap
	Frames  int // without gaps
	Managed int // of the frames
	Unnamed int // of the frames
	Gaps    int
}

func (c *Counts) add(d Counts) {
	c.Threads += d.Threads
	c.Whole += d.Whole
	c.Gapped += d.Gapped
	c.Frames += d.Frames
	c.Managed += d.Managed
	c.Unnamed += d.Unnamed
	c.Gaps += d.Gaps
}

// Summary sums up what was described so far.
func (s *Stacks) Summary() *Summary {
	t := &Summary{}
	for _, list := range [][]loader.Warning{s.session.Process.Problems(), s.session.Warnings} {
		for _, w := range list {
			t.Warnings = append(t.Warnings, Warning{Code: w.Code, Text: w.Text, Offset: w.Off})
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	t.Counts = s.counts
	for img, m := range s.needs {
		lacks := false
		s.session.Process.GuardRetry(func() { lacks = lacksFile(img) })
		if lacks {
			t.Missing = append(t.Missing, *m)
		}
	}
	for _, m := range s.pdbs {
		t.Missing = append(t.Missing, *m)
	}
	slices.SortFunc(t.Missing, func(x, y Missing) int {
		return cmp.Or(cmp.Compare(y.Stops, x.Stops), cmp.Compare(y.Unnamed, x.Unnamed), cmp.Compare(y.Unlined, x.Unlined),
			strings.Compare(x.Name, y.Name), strings.Compare(x.ID, y.ID))
	})
	return t
}

// Absent returns the files that were not found, whichever stacks are looked at: of
// images that the dump has no bytes of, and PDBs of assemblies. What they cost is
// not counted. It looks for a file of each image, as [Stacks.Images] does.
func (s *Stacks) Absent() (list []Missing) {
	seen := map[Missing]bool{}
	add := func(m Missing) {
		if !seen[m] {
			seen[m] = true
			list = append(list, m)
		}
	}
	for _, img := range s.session.Process.Images {
		s.session.Process.GuardRetry(func() {
			if lacksFile(img) && img.Bytes() == "none" {
				add(Missing{Kind: MissingImage, Name: img.ID.Name, ID: imageID(img)})
			}
			if img.Format != "pe" {
				return
			}
			if p := s.session.Process.PDB(arch.Addr(img.Bias())); p != nil && len(p.Bytes()) == 0 {
				add(Missing{Kind: MissingPDB, Name: p.Name, ID: p.ID})
			}
		})
	}
	return list
}

// lacksFile reports whether a file could exist that would tell more of the
// image, and none was found. A trimmed dump knows which files it was cut with; to
// ask for them would send the user on a useless search.
func lacksFile(img *loader.Image) bool {
	if strings.HasPrefix(img.ID.Name, "[") { // [vdso]: the kernel made it
		return false
	}
	if img.CutWithFile() {
		return false
	}
	path, _, _ := img.File()
	return path == ""
}

// Kept returns what a trimmed dump must keep beside memory to give the stacks
// that were described so far (see [loader.Process.WriteTrimmed]): the symbols
// that gave names, and sections that are not mapped and that unwinding has used.
func (s *Stacks) Kept() loader.Kept {
	const debugFrame = ".debug_frame"
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := loader.Kept{Sections: make(map[*loader.Image]map[string][]byte, len(s.framed))}
	s.session.Process.GuardRetry(func() {
		for img := range s.framed {
			if data := img.Section(debugFrame); data != nil {
				k.Sections[img] = map[string][]byte{debugFrame: data}
			}
		}
	})
	if s.symbols != nil {
		k.Symbols = s.symbols.Used()
	}
	return k
}

// leftByDebugFrame notes that the frame at pc was left by .debug_frame.
func (s *Stacks) leftByDebugFrame(pc arch.PC) {
	if img := s.session.Process.ImageAt(pc.Lookup()); img != nil {
		s.mu.Lock()
		s.framed[img] = true
		s.mu.Unlock()
	}
}

// lacking notes what the frames of a stack lack. The caller holds s.mu.
func (s *Stacks) lacking(places []*place) {
	for _, p := range places {
		if p.lacks != nil {
			s.missing(p.lacks).Unnamed += p.frames
		}
		if p.lacksPDB == nil {
			continue
		}
		k := pdbKey{p.lacksPDB.Name, p.lacksPDB.ID}
		m := s.pdbs[k]
		if m == nil {
			m = &Missing{Kind: MissingPDB, Name: k.name, ID: k.id}
			s.pdbs[k] = m
		}
		m.Unlined += p.frames
	}
}

// need notes which image would have let a walk go on, if one would.
func (s *Stacks) need(stop unwind.Stop) {
	img := s.blame(stop)
	if img == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missing(img).Stops++
}

// missing returns what is noted of img. The caller holds s.mu.
func (s *Stacks) missing(img *loader.Image) *Missing {
	m := s.needs[img]
	if m == nil {
		m = &Missing{Kind: MissingImage, Name: img.ID.Name, ID: imageID(img)}
		s.needs[img] = m
	}
	return m
}

// blame returns the image that a stop or gap has to do with: the one that
// holds what was missing, else the one that the last frame's code lies in.
func (s *Stacks) blame(stop unwind.Stop) *loader.Image {
	if stop.At != 0 {
		if img := s.session.Process.ImageAt(stop.At); img != nil {
			return img
		}
	}
	if stop.Reason == unwind.NoRule || stop.Reason == unwind.BadInfo {
		return s.session.Process.ImageAt(stop.PC)
	}
	return nil
}

// stop describes why a stack ends, or why there is a gap in it.
func (s *Stacks) stop(stop unwind.Stop) Stop {
	return Stop{Reason: stop.Reason.String(), PC: stop.PC, At: stop.At, Complete: stop.Reason.Complete(), Text: s.because(stop)}
}

// because says in words why a walk could not go on. It does not say where
// bytes come from, only which image they belong to, so that a trimmed dump
// says the same.
func (s *Stacks) because(stop unwind.Stop) string {
	text := stop.Reason.Doc()
	if stop.Reason.Complete() || stop.Reason == unwind.NotStarted {
		return text
	}
	if stop.At != 0 {
		text += fmt.Sprintf(", at %v", stop.At)
	}
	if v, ok := s.session.Process.Memory.Word(stop.At); ok && stop.Reason == unwind.BadReturnAddress {
		text += fmt.Sprintf(", where %#x stands", v)
	}
	if img := s.blame(stop); img != nil {
		text += " in " + cmp.Or(img.ID.Name, "an assembly without a name in "+cmp.Or(baseName(img.Path), "the dump"))
		if id := imageID(img); id != "" {
			text += " (" + id + ")"
		}
	}
	return text
}
