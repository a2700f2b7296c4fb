package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/symbolize"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/unwind"
)

// A Builder makes the values of this package from a session. It is safe for
// concurrent use.
type Builder struct {
	// Limit is how many frames of a stack, callbacks of a call or methods are
	// kept to be shown; 0: all. The rest are found and counted all the same, so
	// that a limit changes nothing else of what is told.
	Limit int

	s    *managed.Session
	syms *symbolize.Symbolizer // nil: no native names

	mu      sync.RWMutex
	methods map[methodKey]*described
	needs   map[*loader.Image]*Missing
	framed  map[*loader.Image]bool // images that .debug_frame found a caller in
	counts  Counts
}

type methodKey struct {
	rt *clr.Runtime
	md arch.Addr // or the start of the code, where the MethodDesc is not known
}

// described is what is told of a method, worked out once.
type described struct {
	m        clr.Method
	function string
	module   string
}

// NewBuilder returns a builder for s. Without a symbolizer native frames have
// no names.
func NewBuilder(s *managed.Session, syms *symbolize.Symbolizer) *Builder {
	return &Builder{s: s, syms: syms, methods: map[methodKey]*described{}, needs: map[*loader.Image]*Missing{}, framed: map[*loader.Image]bool{}}
}

// Head describes the dump.
func (b *Builder) Head() *Head {
	p := b.s.Process
	h := &Head{Dump: Dump{Path: p.Path, Format: p.Format, OS: p.ABI.OS, Arch: p.Arch.Name, PID: p.PID}}
	if c := p.Crash; c != nil {
		h.Dump.Crash = &Crash{TID: c.Thread, Signal: c.Signal, Code: c.Code, Address: c.Address, HasAddr: c.HasAddr}
	}
	for _, rt := range b.s.Runtimes {
		h.Runtimes = append(h.Runtimes, Runtime{Kind: "coreclr", Version: rt.Version, Image: rt.Image.ID.Name, How: rt.How})
	}
	h.Images = b.images
	return h
}

// images describes the images. Their files are looked for now: whether a walk
// happened to need one must not decide what is told of the image.
func (b *Builder) images() []Image {
	out := make([]Image, len(b.s.Process.Images))
	for i, m := range b.s.Process.Images {
		m.File()
		out[i] = Image{Name: m.ID.Name, Path: m.Path, ID: imageID(m), Span: m.Span(), Bytes: m.Bytes()}
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

// Thread describes a thread without its stack.
func (b *Builder) Thread(t *loader.Thread) Thread {
	out := Thread{TID: t.ID, Name: t.Name}
	if c := b.s.Process.Crash; c != nil {
		out.Crashed = c.Thread == t.ID
	}
	m, rt := b.s.Thread(t.ID)
	if m == nil {
		return out
	}
	out.Managed, out.ManagedID, out.Cooperative = true, m.ID, m.Cooperative
	if e := rt.InFlight(m); e != nil {
		out.Exception = &Exception{Type: e.Type, Message: e.Message, HasMessage: e.HasMessage, Address: e.Address}
	}
	return out
}

// A describer describes stacks on one goroutine.
type describer struct {
	b      *Builder
	places map[placeKey]*Place
	c      Counts
	last   arch.PC // of the frame before
	gaps   int     // of the stack so far
	shown  int     // frames of it that are shown
	spare  []Frame // room for the next stack
}

// A placeKey is what the description of a frame depends on, but for its stack
// pointer and how it was found.
type placeKey struct {
	pc     arch.PC
	kind   managed.Kind
	method arch.Addr
}

func (b *Builder) describer() *describer {
	return &describer{b: b, places: map[placeKey]*Place{}}
}

// Stack describes a thread and the stack that was walked of it.
func (b *Builder) Stack(t *loader.Thread, frames []managed.Frame, stop unwind.Stop) *Thread {
	d, out := b.describer(), b.Thread(t)
	for i := range frames {
		out.Frames = append(out.Frames, d.frame(&frames[i]))
	}
	d.end(&out, stop)
	return &out
}

// frame describes the next frame of a stack.
func (d *describer) frame(f *managed.Frame) Frame {
	b, last := d.b, d.last
	d.last = f.PC
	if f.Kind == managed.Gap {
		d.c.Gap++
		d.gaps++
		b.need(f.Why)
		return Frame{Place: &Place{Kind: f.Kind.String(), Why: f.Why.Reason.String() + ": " + b.because(f.Why)}}
	}
	if d.c.Frames++; f.Kind == managed.Managed {
		d.c.Managed++
	}
	k := placeKey{f.PC, f.Kind, f.Code.Method}
	p := d.places[k]
	if p == nil {
		p = &Place{Kind: f.Kind.String()}
		if f.Kind == managed.Managed {
			b.managedPlace(p, f)
		} else {
			b.nativePlace(p, f)
		}
		d.places[k] = p
	}
	if p.lacks != nil {
		b.unnamed(p.lacks)
	}
	if p.Function == "" {
		d.c.Unnamed++
	}
	if f.By == unwind.ByDebugFrame {
		b.frameInfo(last)
	}
	return Frame{PC: f.PC, SP: f.SP, By: f.By.String(), Place: p}
}

// end ends the stack of out.
func (d *describer) end(out *Thread, stop unwind.Stop) {
	b := d.b
	out.Stop = Stop{Reason: stop.Reason.String(), PC: stop.PC, At: stop.At, Complete: stop.Reason.Complete(), Text: b.because(stop)}
	if d.c.Threads++; !out.Stop.Complete {
		b.need(stop)
	}
	switch {
	case d.gaps > 0:
		d.c.Gapped++
	case out.Stop.Complete:
		d.c.Whole++
	}
	b.mu.Lock()
	b.counts.add(d.c)
	b.mu.Unlock()
	d.c, d.last, d.gaps = Counts{}, arch.PC{}, 0
}

func (c *Counts) add(d Counts) {
	c.Threads += d.Threads
	c.Whole += d.Whole
	c.Gapped += d.Gapped
	c.Frames += d.Frames
	c.Managed += d.Managed
	c.Unnamed += d.Unnamed
	c.Gap += d.Gap
}

func (b *Builder) nativePlace(o *Place, f *managed.Frame) {
	if f.Code.Kind == clr.Stub {
		// A stub the runtime made has no symbol; what it is for is the name.
		o.Function = f.Code.Stub.String()
		if start := f.Code.Start; start != 0 && f.PC.Addr >= start {
			o.Offset = uint64(f.PC.Addr - start)
		}
		return
	}
	var img *loader.Image
	if b.syms == nil {
		img = b.s.Process.ImageAt(f.PC.Lookup())
	} else {
		var n symbolize.Name
		img, n = b.syms.Native(f.PC)
		o.Function, o.Symbol, o.Offset = n.Function, n.Symbol, n.Offset
		if img != nil && n.Function == "" {
			o.lacks = img
		}
	}
	if img != nil {
		o.Module = img.ID.Name
		o.Link = arch.LinkAddr(uint64(f.PC.Addr) - img.Bias())
	}
}

func (b *Builder) managedPlace(o *Place, f *managed.Frame) {
	o.Method = &Method{ID: f.Code.Method, Funclet: f.Code.Funclet, FuncletKnown: f.Code.FuncletKnown, Code: f.Code.Kind.String(), ILOffset: -1}
	if il, ok := f.Runtime.ILOffset(f.Code, f.PC); ok {
		o.Method.ILOffset = int64(il)
	}
	if start := f.Code.Start; f.PC.Addr >= start {
		o.Offset = uint64(f.PC.Addr - start)
	}
	img := b.s.Process.ImageAt(f.PC.Lookup())
	if f.Code.Method == 0 && f.Code.Row == 0 {
		if img != nil {
			o.Module = img.ID.Name
			o.lacks = img
		}
		return
	}
	d := b.describe(f.Runtime, &f.Code)
	o.Function, o.Module = d.function, d.module
	o.Method.Name, o.Method.Token = d.m.Name, d.m.Token
	if d.m.ILStub {
		o.Method.Code = "stub"
	}
	if o.Module == "" && img != nil {
		o.Module = img.ID.Name
	}
	if o.Function == "" && d.m.Token != 0 { // else no file has a name for it
		if def := b.imageNamed(d.m.Module); def != nil {
			img = def // the image that holds the name, not the one that holds the code
		}
		o.lacks = img
	}
}

// describe names a method, once.
func (b *Builder) describe(rt *clr.Runtime, c *clr.Code) *described {
	k := methodKey{rt, c.Method}
	if c.Method == 0 {
		k.md = c.Start
	}
	b.mu.RLock()
	d := b.methods[k]
	b.mu.RUnlock()
	if d != nil {
		return d
	}
	d = &described{}
	// What could not be read is missing from the method; that is all there is
	// to show.
	d.m, _ = rt.DescribeCode(c)
	d.function, d.module = symbolize.Managed(&d.m), baseName(d.m.Module)
	b.mu.Lock()
	b.methods[k] = d
	b.mu.Unlock()
	return d
}

// baseName returns the last part of a path of any system.
func baseName(p string) string {
	if n := strings.LastIndexByte(p, '\\'); n >= 0 {
		p = p[n+1:]
	}
	if p == "" {
		return ""
	}
	return path.Base(p)
}

func (b *Builder) imageNamed(file string) *loader.Image {
	if file == "" {
		return nil
	}
	for _, m := range b.s.Process.Images {
		if m.Path == file || m.ID.Name == file {
			return m
		}
	}
	return nil
}

// unnamed notes that an image would have had a name.
func (b *Builder) unnamed(img *loader.Image) { b.note(img).Unnamed++; b.mu.Unlock() }

// need notes which image would have let a walk go on.
func (b *Builder) need(s unwind.Stop) {
	if img := b.blame(s); img != nil {
		b.note(img).Stops++
		b.mu.Unlock()
	}
}

// note returns what is noted of img, with b locked.
func (b *Builder) note(img *loader.Image) *Missing {
	b.mu.Lock()
	m := b.needs[img]
	if m == nil {
		m = &Missing{Name: img.ID.Name, ID: imageID(img)}
		b.needs[img] = m
	}
	return m
}

// blame returns the image that a stop or gap has to do with: the one that
// holds what was missing, else the one that the last frame's code lies in.
func (b *Builder) blame(s unwind.Stop) *loader.Image {
	if s.At != 0 {
		if img := b.s.Process.ImageAt(s.At); img != nil {
			return img
		}
	}
	if s.Reason == unwind.NoRule || s.Reason == unwind.BadInfo {
		return b.s.Process.ImageAt(s.PC)
	}
	return nil
}

// because says in words why a walk could not go on. It does not say where
// bytes come from, only which image they belong to, so that a trimmed dump
// says the same.
func (b *Builder) because(s unwind.Stop) string {
	text := s.Reason.Doc()
	if s.Reason.Complete() || s.Reason == unwind.NotStarted {
		return text
	}
	if s.At != 0 {
		text += fmt.Sprintf(", at %v", s.At)
	}
	if v, ok := b.s.Process.Memory.Word(s.At); ok && s.Reason == unwind.BadReturnAddress {
		text += fmt.Sprintf(", where %#x stands", v)
	}
	if img := b.blame(s); img != nil {
		text += " in " + cmp.Or(img.ID.Name, "an assembly without a name in "+cmp.Or(baseName(img.Path), "the dump"))
		if id := imageID(img); id != "" {
			text += " (" + id + ")"
		}
	}
	return text
}

// frameInfo notes that the frame at pc was left by .debug_frame.
func (b *Builder) frameInfo(pc arch.PC) {
	if img := b.s.Process.ImageAt(pc.Lookup()); img != nil {
		b.mu.Lock()
		b.framed[img] = true
		b.mu.Unlock()
	}
}

// Sections returns the sections that stacks were built from and that are not
// mapped, for a trimmed dump to keep.
func (b *Builder) Sections() map[*loader.Image]map[string][]byte {
	const name = ".debug_frame"
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make(map[*loader.Image]map[string][]byte, len(b.framed))
	for img := range b.framed {
		if data := img.Section(name); data != nil {
			out[img] = map[string][]byte{name: data}
		}
	}
	return out
}

// lacksFile reports whether a file could exist that would tell more of the
// image, and none was found. A trimmed dump knows which files it was cut with;
// asking for them would send the user on a useless search.
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

// Tail sums up what was built.
func (b *Builder) Tail() *Tail {
	b.mu.RLock()
	defer b.mu.RUnlock()
	t := &Tail{Counts: b.counts}
	for _, list := range [][]loader.Warning{b.s.Process.Problems(), b.s.Warnings} {
		for _, w := range list {
			t.Warnings = append(t.Warnings, Warning{Code: w.Code, Text: w.Text, Offset: w.Off})
		}
	}
	for img, m := range b.needs {
		if lacksFile(img) {
			t.Missing = append(t.Missing, *m)
		}
	}
	slices.SortFunc(t.Missing, func(x, y Missing) int {
		return cmp.Or(cmp.Compare(y.Stops, x.Stops), cmp.Compare(y.Unnamed, x.Unnamed), strings.Compare(x.Name, y.Name), strings.Compare(x.ID, y.ID))
	})
	return t
}
