package report

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/unwind"
)

// A Seed is the seed of one thread, and how it was looked for.
type Seed struct {
	Thread     Thread
	Needed     bool
	NeedKnown  bool
	HR         profiler.HRESULT // of a walk that is given the seed
	Unseeded   profiler.HRESULT // of one that is given none
	Native     []Frame
	Omitted    int // native frames, of those nearest to the managed one
	Seed       *SeedContext
	SameAsDocs bool         // or what the documented search finds is not known
	Documented *SeedContext // what the documented search finds; nil: none
	Stop       *Stop        // why there is no seed
	Lost       bool         // there is no seed, and a managed frame may be behind the last one
	Verdict    *profiler.Verdict
}

// A SeedContext is a seed for eyes and for programs.
type SeedContext struct {
	PC, SP, FP arch.Addr
	Registers  []Register
	Context    []byte
	Frame      Frame
}

// A Register is a register that is known.
type Register struct {
	Name  string
	Value uint64
}

// Seeds is the seeds of a process.
type Seeds struct {
	Head    *Head
	Threads []Seed
	Hazards []Hazard // nil if they were not asked for
	Asked   bool     // for hazards
	Tail    *Tail
}

// Sound reports whether nothing is missing or wrong: there are managed threads,
// each was seen down to a managed frame or to its end, the seed that was given
// to be judged is one of theirs, and no guideline is broken.
func (s *Seeds) Sound() bool {
	sound, judged, right := len(s.Threads) > 0 && len(s.Hazards) == 0, false, false
	for i := range s.Threads {
		t := &s.Threads[i]
		sound = sound && !t.Lost
		if t.Verdict != nil {
			judged, right = true, right || t.Verdict.Same
		}
	}
	return sound && (!judged || right)
}

// A Hazard is a guideline of asynchronous walks that the process breaks.
type Hazard struct {
	profiler.Hazard
	Shown []string // frames that show it
}

// Seed describes the seed that was found of thread t.
func (b *Builder) Seed(t *loader.Thread, a *arch.Arch, s *profiler.SeedSearch) Seed {
	// The native frames, and the seeds' own, are named as those of a stack.
	frames := append([]managed.Frame(nil), s.Native...)
	for _, c := range []*profiler.Seed{s.Seed, s.Documented} {
		if c != nil {
			_, rt := b.s.Lookup(c.PC)
			frames = append(frames, managed.Frame{Kind: managed.Managed, PC: arch.PC{Addr: c.PC, Exact: len(s.Native) == 0}, SP: c.SP, Code: c.Code, Runtime: rt})
		}
	}
	named := b.Stack(t, frames, s.Stop)
	out := Seed{Thread: b.Thread(t), Needed: s.Needed, NeedKnown: s.NeedKnown, SameAsDocs: s.SameAsDocumented() || !s.DocumentedKnown, Native: named.Frames[:len(s.Native)]}
	rest := named.Frames[len(s.Native):]
	for _, p := range []struct {
		from *profiler.Seed
		to   **SeedContext
	}{{s.Seed, &out.Seed}, {s.Documented, &out.Documented}} {
		if p.from != nil {
			*p.to = seedContext(a, p.from)
			(*p.to).Frame, rest = rest[0], rest[1:]
		}
	}
	if b.Limit > 0 && len(out.Native) > b.Limit {
		out.Omitted = len(out.Native) - b.Limit
		out.Native = out.Native[:b.Limit]
	}
	if s.Seed == nil && s.Stop.Reason != unwind.NotStarted {
		out.Stop = &named.Stop
	}
	out.Lost = s.Seed == nil && !s.Stop.Reason.Complete()
	return out
}

// FrameNames names the frames of a thread's stack, functions as their symbol
// is called, methods by their metadata name; "" where there is no name.
func (b *Builder) FrameNames(t *loader.Thread, frames []managed.Frame) []string {
	named := b.Stack(t, frames, unwind.Stop{Reason: unwind.EndOfStack})
	out := make([]string, len(frames))
	for i := range named.Frames {
		f := &named.Frames[i]
		if out[i] = f.Function; f.Method != nil {
			out[i] = f.Method.Name
		}
	}
	return out
}

func seedContext(a *arch.Arch, s *profiler.Seed) *SeedContext {
	c := &SeedContext{PC: s.PC, SP: s.SP, Context: s.Context}
	if fp, ok := s.Regs.Get(a.FP); ok {
		c.FP = arch.Addr(fp)
	}
	for i, name := range a.Names {
		if v, ok := s.Regs.Get(arch.Reg(i)); ok {
			c.Registers = append(c.Registers, Register{name, v})
		}
	}
	return c
}

// WriteSeeds writes the seeds of a process in one of the forms text and json.
func WriteSeeds(w io.Writer, format string, style Style, s *Seeds) error {
	switch format {
	case "json":
		return s.json(w)
	case "text":
		return s.text(w, style)
	}
	return fmt.Errorf("no format %q; there are text, json", format)
}

func (s *Seeds) json(w io.Writer) error {
	var b jsonBuffer
	b.head(s.Head)
	b.raw(",\n ")
	b.key("threads")
	b.raw("[")
	for i := range s.Threads {
		b.item(i)
		b.seed(&s.Threads[i])
		b.raw("}")
	}
	b.raw("],\n ")
	if s.Asked {
		b.key("hazards")
		b.raw("[")
		for i := range s.Hazards {
			b.item(i)
			b.hazard(&s.Hazards[i])
			b.raw("}")
		}
		b.raw("],\n ")
	}
	b.warnings(s.Tail)
	b.raw("}\n")
	_, err := w.Write(b.buf)
	return err
}

func (b *jsonBuffer) seed(s *Seed) {
	b.thread(&s.Thread)
	b.booleanIf("needed", s.Needed, s.NeedKnown)
	b.str("hr", s.HR.String())
	b.str("hr_name", s.HR.Name())
	b.str("hr_unseeded", s.Unseeded.String())
	b.key("native")
	b.raw("[")
	for i := range s.Native {
		f := &s.Native[i]
		if i > 0 {
			b.raw(",")
		}
		b.raw("\n    {")
		b.addrIf("pc", uint64(f.PC.Addr), true)
		b.addrIf("sp", uint64(f.SP), true)
		b.str("by", f.By)
		b.str("module", f.Module)
		b.str("function", f.Function)
		b.raw("}")
	}
	b.raw("],\n   ")
	b.num("omitted", int64(s.Omitted))
	b.key("seed")
	b.context(s.Seed)
	b.key("documented")
	switch {
	case s.SameAsDocs:
		b.raw("null")
	case s.Documented == nil:
		b.raw(`"none"`)
	default:
		b.context(s.Documented)
	}
	b.key("stop")
	if s.Stop == nil {
		b.raw("null")
	} else {
		b.raw("{")
		b.str("reason", s.Stop.Reason)
		b.addr("pc", uint64(s.Stop.PC))
		b.addr("at", uint64(s.Stop.At))
		b.str("text", s.Stop.Text)
		b.raw("}")
	}
	if v := s.Verdict; v != nil {
		b.key("verdict")
		b.raw("{")
		b.str("hr", v.HR.String())
		b.str("hr_name", v.HR.Name())
		b.num("callbacks", int64(v.Calls))
		b.booleanIf("managed", v.Managed, !v.Unknown)
		b.booleanIf("ignored", v.Ignored, s.NeedKnown)
		b.boolean("same_as_computed", v.Same)
		b.key("differs")
		b.strings(v.Differs)
		b.str("text", v.Text)
		b.str("why", v.Why.String())
		b.raw("}")
	}
}

func (b *jsonBuffer) context(c *SeedContext) {
	if c == nil {
		b.raw("null")
		return
	}
	b.raw("{")
	b.addrIf("pc", uint64(c.PC), true)
	b.addrIf("sp", uint64(c.SP), true)
	b.addrIf("fp", uint64(c.FP), true)
	b.str("function", c.Frame.Function)
	b.key("registers")
	b.raw("{")
	for _, r := range c.Registers {
		b.addrIf(r.Name, r.Value, true)
	}
	b.raw("}")
	b.str("ctx", hex.EncodeToString(c.Context))
	b.raw("}")
}

func (b *jsonBuffer) strings(list []string) {
	b.raw("[")
	for i, s := range list {
		if i > 0 {
			b.raw(", ")
		}
		b.text(s)
	}
	b.raw("]")
}

func (b *jsonBuffer) tids(key string, list []uint32) {
	b.key(key)
	b.raw("[")
	for i, tid := range list {
		if i > 0 {
			b.raw(", ")
		}
		b.buf = fmt.Append(b.buf, tid)
	}
	b.raw("]")
}

func (b *jsonBuffer) hazard(h *Hazard) {
	b.str("rule", h.Rule)
	b.str("text", h.Text)
	b.num("walker", int64(h.Walker))
	b.num("target", int64(h.Target))
	b.str("lock", h.Lock)
	b.addr("lock_address", uint64(h.LockAt))
	b.numIf("holder", int64(h.Holder), h.Holder != 0)
	b.tids("threads", h.Threads)
	b.tids("victims", h.Victims)
	b.key("waits")
	b.raw("[")
	for i, w := range h.Waits {
		if i > 0 {
			b.raw(", ")
		}
		b.raw("{")
		b.num("who", int64(w.Who))
		b.num("whom", int64(w.Whom))
		b.str("what", w.What)
		b.raw("}")
	}
	b.raw("]")
	b.key("frames")
	b.strings(h.Shown)
	b.str("way_out", h.WayOut)
}

func (s *Seeds) text(w io.Writer, style Style) error {
	p := page{style: style}
	p.title(s.Head)
	for i := range s.Threads {
		p.seed(&s.Threads[i])
	}
	if len(s.Threads) == 0 {
		p.line(plain, "")
		p.line(yellow, "no seeds: the runtime knows no thread of the dump")
	}
	if s.Asked {
		p.hazards(s.Hazards)
	}
	p.tail(s.Tail)
	_, err := w.Write(p.buf)
	return err
}

func (p *page) seed(s *Seed) {
	p.line(plain, "")
	p.line(bold, "Thread "+s.Thread.heading())
	for i := range s.Native {
		f := &s.Native[i]
		head := fmt.Sprintf("  %#016x  %#016x  %-14s  ", uint64(f.PC.Addr), uint64(f.SP), f.By)
		p.line(dim, head+p.fit(f.Function, f.suffix(), length(head)))
	}
	if s.Omitted > 0 {
		p.line(dim, "  ... "+Omitted{Frames: s.Omitted}.sentence())
	}
	if c := s.Seed; c == nil {
		why := "it has no managed frame"
		if s.Stop != nil && !s.Stop.Complete {
			why = "none was found: " + s.Stop.Text
		}
		p.line(yellow, "  no seed: "+why)
	} else {
		head := fmt.Sprintf("  seed: pc %#016x  sp %#016x  fp %#016x  ", uint64(c.PC), uint64(c.SP), uint64(c.FP))
		p.line(green, head+p.fit(c.Frame.Function, c.Frame.suffix(), length(head)))
		if p.style.Verbose {
			for _, r := range c.Registers {
				p.line(dim, fmt.Sprintf("    %-4s %#016x", r.Name, r.Value))
			}
			p.line(dim, "    "+hex.EncodeToString(c.Context))
		}
	}
	use := "the runtime would not look at it: the thread is in preemptive mode"
	if !s.NeedKnown {
		use = "whether the runtime would look at it is not known: the dump lacks the thread's Thread object"
	} else if s.Needed {
		use = "the runtime needs it: without one it returns " + s.Unseeded.Name() + ", with it " + s.HR.Name()
	}
	p.line(plain, "  "+use)
	if d := s.Documented; !s.SameAsDocs && d == nil {
		p.line(yellow, "  the search that the documentation describes finds none")
	} else if !s.SameAsDocs {
		head := fmt.Sprintf("  the search that the documentation describes finds another: pc %#016x  sp %#016x  ", uint64(d.PC), uint64(d.SP))
		p.line(yellow, head+p.fit(d.Frame.Function, d.Frame.suffix(), length(head)))
	}
	if v := s.Verdict; v != nil {
		color := yellow
		if v.Same {
			color = green
		}
		p.line(color, fmt.Sprintf("  the seed given: %s; %v %s after %s", v.Text, v.HR, v.HR.Name(), plural(v.Calls, "callback", "callbacks")))
	}
}

func (p *page) hazards(list []Hazard) {
	p.line(plain, "")
	if len(list) == 0 {
		p.line(plain, "No guideline of asynchronous walks is seen broken.")
		return
	}
	for i := range list {
		h := &list[i]
		p.line(bold, clean(h.Rule))
		p.line(yellow, "  "+clean(h.Text))
		for _, w := range h.Waits {
			p.line(plain, fmt.Sprintf("  thread %d waits for thread %d: %s", w.Who, w.Whom, clean(w.What)))
		}
		for _, f := range h.Shown {
			p.line(dim, "    "+clean(f))
		}
		p.line(plain, "  "+clean(h.WayOut))
	}
}
