package report

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/managed/stacks"
)

// Seeds is the seeds of a process.
type Seeds struct {
	Head    *Head
	Threads []Seed
	Asked   bool     // for hazards
	Hazards []Hazard // empty if they were not asked for
	Tail    *stacks.Summary
}

// A Seed is the seed of one thread, and how it was looked for.
type Seed struct {
	Thread     stacks.Thread // without its stack
	Needed     bool
	NeedKnown  bool
	HR         profiler.HRESULT // of a walk that is given the seed
	Unseeded   profiler.HRESULT // of one that is given none
	Native     []stacks.Frame   // from the leaf to the one that managed code called
	Omitted    int              // native frames, of those nearest to the managed one
	Seed       *SeedContext
	SameAsDocs bool         // or what the documented search finds is not known
	Documented *SeedContext // what the documented search finds; nil: none
	Stop       *stacks.Stop // why there is no seed
	Lost       bool         // there is no seed, and a managed frame may be behind the last one
	Verdict    *profiler.Verdict
}

// A SeedContext is a seed for eyes and for programs.
type SeedContext struct {
	PC, SP, FP arch.Addr
	Registers  []Register // those that are known
	Context    []byte     // a whole CONTEXT
	Function   string     // that the pc lies in, for eyes
	Suffix     string     // what follows the function's name
}

// A Register is a register that is known.
type Register struct {
	Name  string
	Value uint64
}

// A Hazard is a guideline of asynchronous walks that the process breaks.
type Hazard struct {
	profiler.Hazard
	Shown []string // frames that show it
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

func (s *Seeds) forms() []form { return textAndJSON(s.text, s.json) }

func (s *Seeds) json(b *jsonBuffer) {
	b.document(s.Head, s.Tail, func() {
		objects(b, "threads", line1, s.Threads, b.seed)
		if s.Asked {
			b.raw(",\n ")
			objects(b, "hazards", line1, s.Hazards, b.hazard)
		}
	})
}

func (b *jsonBuffer) seed(s *Seed) {
	b.thread(&s.Thread)
	b.booleanIf("needed", s.Needed, s.NeedKnown)
	b.str("hr", s.HR.String())
	b.str("hr_name", s.HR.Name())
	b.str("hr_unseeded", s.Unseeded.String())
	objects(b, "native", line2, s.Native, func(f *stacks.Frame) {
		b.addrIf("pc", uint64(f.PC.Addr), true)
		b.addrIf("sp", uint64(f.SP), true)
		b.str("by", f.By)
		b.str("module", f.Module)
		b.str("function", f.Function)
	})
	b.raw(",\n   ")
	b.num("omitted", int64(s.Omitted))
	b.context("seed", s.Seed)
	switch {
	case s.SameAsDocs:
		b.null("documented")
	case s.Documented == nil:
		b.str("documented", "none")
	default:
		b.context("documented", s.Documented)
	}
	if s.Stop == nil {
		b.null("stop")
	} else {
		b.object("stop", func() {
			b.str("reason", s.Stop.Reason)
			b.addr("pc", uint64(s.Stop.PC))
			b.addr("at", uint64(s.Stop.At))
			b.str("text", s.Stop.Text)
		})
	}
	if s.Verdict != nil {
		b.verdict(s)
	}
}

func (b *jsonBuffer) verdict(s *Seed) {
	v := s.Verdict
	b.object("verdict", func() {
		b.str("hr", v.HR.String())
		b.str("hr_name", v.HR.Name())
		b.num("callbacks", int64(v.Calls))
		b.booleanIf("managed", v.Managed, !v.Unknown)
		b.booleanIf("ignored", v.Ignored, s.NeedKnown)
		b.boolean("same_as_computed", v.Same)
		values(b, "differs", v.Differs, b.text)
		b.str("text", v.Text)
		b.str("why", v.Why.String())
	})
}

func (b *jsonBuffer) context(k string, c *SeedContext) {
	if c == nil {
		b.null(k)
		return
	}
	b.object(k, func() {
		b.addrIf("pc", uint64(c.PC), true)
		b.addrIf("sp", uint64(c.SP), true)
		b.addrIf("fp", uint64(c.FP), true)
		b.str("function", c.Function)
		b.object("registers", func() {
			for _, r := range c.Registers {
				b.addrIf(r.Name, r.Value, true)
			}
		})
		b.str("ctx", hex.EncodeToString(c.Context))
	})
}

func (b *jsonBuffer) hazard(h *Hazard) {
	tid := func(n uint32) { b.buf = strconv.AppendUint(b.buf, uint64(n), 10) }
	b.str("rule", h.Rule)
	b.str("text", h.Text)
	b.num("walker", int64(h.Walker))
	b.num("target", int64(h.Target))
	b.str("lock", h.Lock)
	b.addr("lock_address", uint64(h.LockAt))
	b.numIf("holder", int64(h.Holder), h.Holder != 0)
	values(b, "threads", h.Threads, tid)
	values(b, "victims", h.Victims, tid)
	objects(b, "waits", inline, h.Waits, func(w *profiler.Wait) {
		b.num("who", int64(w.Who))
		b.num("whom", int64(w.Whom))
		b.str("what", w.What)
	})
	values(b, "frames", h.Shown, b.text)
	b.str("way_out", h.WayOut)
}

func (s *Seeds) text(p *page) {
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
}

func (p *page) seed(s *Seed) {
	p.line(plain, "")
	p.heading(&s.Thread)
	for i := range s.Native {
		f := &s.Native[i]
		head := fmt.Sprintf("  %#016x  %#016x  %-14s  ", uint64(f.PC.Addr), uint64(f.SP), f.By)
		p.line(dim, head+p.fit(f.Function, suffix(f), length(head)))
	}
	if s.Omitted > 0 {
		p.line(dim, "  ... "+omitted(stacks.Omitted{Frames: s.Omitted}))
	}
	p.found(s)
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
		p.line(yellow, head+p.fit(d.Function, d.Suffix, length(head)))
	}
	if v := s.Verdict; v != nil {
		color := yellow
		if v.Same {
			color = green
		}
		p.line(color, fmt.Sprintf("  the seed given: %s; %v %s after %s", v.Text, v.HR, v.HR.Name(), plural(v.Calls, "callback", "callbacks")))
	}
}

// found writes the seed that was found, or why there is none.
func (p *page) found(s *Seed) {
	c := s.Seed
	if c == nil {
		why := "it has no managed frame"
		if s.Stop != nil && !s.Stop.Complete {
			why = "none was found: " + s.Stop.Text
		}
		p.line(yellow, "  no seed: "+why)
		return
	}
	head := fmt.Sprintf("  seed: pc %#016x  sp %#016x  fp %#016x  ", uint64(c.PC), uint64(c.SP), uint64(c.FP))
	p.line(green, head+p.fit(c.Function, c.Suffix, length(head)))
	if !p.style.Verbose {
		return
	}
	for _, r := range c.Registers {
		p.line(dim, fmt.Sprintf("    %-4s %#016x", r.Name, r.Value))
	}
	p.line(dim, "    "+hex.EncodeToString(c.Context))
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
