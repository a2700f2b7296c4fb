package unwind

import (
	"cmp"
	"slices"
	"sort"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// A Known is a Source and what frames found by it are marked with.
type Known struct {
	By     By
	Source Source
}

// Options change how an Unwinder works. The zero value is fine.
type Options struct {
	// Sources are asked before the unwinder's own, in order: they know code
	// that no image describes.
	Sources []Known
	// Executable reports whether code at an address can run, if that is known.
	// Where none can, a thread stands because it called there, and is left by the
	// return address of the call. Nil: only the lowest addresses are known.
	Executable func(arch.Addr) (exec, known bool)
	// Entries returns the entry points of the program and its dynamic linker. It
	// is called at most once, when code is met that no table describes. Nil: none
	// are known.
	Entries func() []arch.Addr
	// Guess asks the frame pointer when nothing else knows the code, or what
	// does is missing or broken; the frame so found says ByFramePointer. Without
	// it such a walk ends with NoRule, and the caller of the walk decides.
	Guess bool
	// Code reports whether a return address can lie in code. A walk that reads
	// one that does not ends with BadReturnAddress: what lies there is no frame.
	// It is asked by many walkers at a time; nil: every address is believed.
	Code func(pc arch.PC) bool
	// Returns reports whether code that its unwind codes have left can return to
	// pc. A walk ends with BadReturnAddress where it cannot: the word is there to
	// catch the return, and whoever put it there has the return address. It is
	// asked of replaced return addresses too, whatever it says then. Nil: it can.
	Returns func(pc arch.PC) bool
	// MaxFrames bounds one walk; 0: 1,000,000.
	MaxFrames int
}

// An Unwinder holds what is shared by all walks of one process. It is
// read-only, and safe for concurrent use.
type Unwinder struct {
	abi    *arch.ABI
	arch   *arch.Arch  // of abi
	saved  arch.RegSet // abi.CalleeSaved, for every step
	mem    Memory
	max    int
	given  []Known // Options.Sources
	exact  []Known // kinds that are asked first of a pc that is about to run
	code   func(arch.PC) bool
	back   func(arch.PC) bool
	images []image // by address

	executable func(arch.Addr) (exec, known bool)
	entries    func() []arch.Addr

	rest  []Known // kinds that are asked for code that no table covers
	guess []Known // kinds that guess; empty without Options.Guess
}

// An image is an Image and its sources, which are opened when code in it is
// first met: a process maps hundreds of images, a stack goes through ten.
type image struct {
	Image
	span    arch.Span
	once    bin.Once
	sources []Known
}

// New prepares to unwind code of an operating system on a CPU, such as
// arch.AMD64.On(arch.Linux), that lies in images, which do not overlap and may
// come in any order. It reads nothing yet. opt may be nil.
func New(abi *arch.ABI, mem Memory, images []Image, opt *Options) *Unwinder {
	if opt == nil {
		opt = &Options{}
	}
	u := &Unwinder{abi: abi, arch: abi.Arch, saved: abi.CalleeSaved, mem: mem, given: opt.Sources,
		max:  cmp.Or(opt.MaxFrames, 1_000_000),
		code: opt.Code, back: opt.Returns,
		executable: opt.Executable, entries: opt.Entries}
	if u.executable == nil {
		u.executable = lowOnly
	}
	u.images = make([]image, len(images))
	images = slices.Clone(images)
	slices.SortStableFunc(images, func(x, y Image) int { return cmp.Compare(x.Span().Lo, y.Span().Lo) })
	for i, img := range images {
		u.images[i].Image, u.images[i].span = img, img.Span()
	}
	for _, k := range kinds {
		var list *[]Known
		switch {
		case k.when == first:
			list = &u.exact
		case k.when == uncovered:
			list = &u.rest
		case k.when == guessing && opt.Guess:
			list = &u.guess
		default:
			continue
		}
		if s := k.open(u, nil); s != nil {
			*list = append(*list, Known{k.by, s})
		}
	}
	return u
}

// imageAt returns the image that holds a, or nil.
func (u *Unwinder) imageAt(a arch.Addr) *image {
	i := sort.Search(len(u.images), func(i int) bool { return u.images[i].span.Hi > a })
	if i < len(u.images) && u.images[i].span.Has(a) {
		return &u.images[i]
	}
	return nil
}

// open opens the sources of m. Whether its file is at hand is known only now.
func (u *Unwinder) open(m *image) {
	m.sources = nil // of an attempt that was broken off
	for _, k := range kinds {
		if k.when == inImage {
			if s := k.open(u, m.Image); s != nil {
				m.sources = append(m.sources, Known{k.by, s})
			}
		}
	}
}

// cfi sets t up for the call frame information of img.
func (u *Unwinder) cfi(t *cfi, img Image) {
	t.abi, t.arch, t.mem = u.abi, u.arch, u.mem
	t.nregs = min(len(u.arch.Names), arch.MaxRegs)
	t.span = img.Span()
	t.ptrs = objfile.Pointers{Mem: u.mem, Word: u.arch.Word, Span: t.span, Bias: img.Bias(), Relocated: true}
	// What GCC's unwinder takes for the bases of textrel and datarel
	// pointers, which compilers of these CPUs do not use.
	if s, ok := img.Table(".text"); ok {
		t.base.Text = s.Lo
	}
	if s, ok := img.Table(".got.plt"); ok {
		t.base.Data = s.Lo
	}
}

// find asks the sources how to leave the frame of s. For NoInfo, s.Why says
// what is not known.
func (u *Unwinder) find(s *Step) (By, Outcome) {
	for i := range u.given {
		if by, out := u.ask(&u.given[i], s); out != NoInfo {
			return by, out
		}
	}
	for i := 0; s.PC.Exact && i < len(u.exact); i++ {
		if by, out := u.ask(&u.exact[i], s); out != NoInfo {
			return by, out
		}
	}
	m := u.imageAt(s.PC.Lookup())
	if m == nil {
		m = u.imageAt(s.PC.Addr)
	}
	by, out := ByContext, NoInfo
	if m == nil {
		s.Why = Stop{Reason: UnknownCode, At: s.PC.Addr}
	} else {
		s.Why = Stop{Reason: NoRule, At: s.PC.Addr}
		by, out = u.askImage(m, s)
	}
	if out == NoInfo {
		why := s.Why
		for i := range u.rest {
			if by, out := u.ask(&u.rest[i], s); out != NoInfo {
				return by, out
			}
		}
		s.Why = why
	}
	if out != NoInfo && out != Broken {
		return by, out
	}
	why := s.Why
	for i := range u.guess {
		if by, out := u.ask(&u.guess[i], s); out != NoInfo {
			return by, out
		}
	}
	s.Why = why
	return by, out
}

func (u *Unwinder) ask(k *Known, s *Step) (By, Outcome) {
	s.Exact, s.Once, s.RAAt = false, false, 0
	return k.By, k.Source.Unwind(s)
}

// askImage asks the sources of m. One that is broken does not keep the next
// from being asked, but if none can answer it was the reason.
func (u *Unwinder) askImage(m *image, s *Step) (By, Outcome) {
	m.once.Do(func() { u.open(m) })
	var first Stop
	var by By
	for i := range m.sources {
		k, out := u.ask(&m.sources[i], s)
		switch out {
		case NoInfo:
		case Broken:
			if first.Reason == NotStarted {
				first, by = s.Why, k
			}
		default:
			return k, out
		}
	}
	if first.Reason != NotStarted {
		s.Why = first
		return by, Broken
	}
	// An image without its first bytes has not told where its tables are.
	if u.mem.View(m.span.Lo, 1) == nil {
		return ByContext, s.broken(InfoMissing, m.span.Lo)
	}
	s.Why = Stop{Reason: NoRule, At: s.PC.Addr}
	return ByContext, NoInfo
}

// RuleAt returns what is known about leaving pc without looking at a stack:
// UseRule and the rule, Final, NoInfo or Broken and why, or Stepped where the
// way out depends on more than a Rule can say. By is the source that answered.
func (u *Unwinder) RuleAt(pc arch.PC) (r arch.Rule, by By, out Outcome, why Stop) {
	s := &Step{PC: pc, Mem: u.mem, Arch: u.arch}
	by, out = u.find(s)
	switch {
	case out == UseRule:
		return s.Rule, by, out, Stop{}
	case out == Broken && (s.Why.Reason == RegisterUnknown || s.Why.Reason == MemoryMissing):
		return arch.Rule{}, by, Stepped, Stop{}
	case out == Broken || out == NoInfo:
		why = s.Why
		why.PC, why.By = pc.Addr, by
	}
	return arch.Rule{}, by, out, why
}
