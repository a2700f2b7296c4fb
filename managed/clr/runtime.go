package clr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A Runtime is one CoreCLR in a process. It is safe for concurrent use.
type Runtime struct {
	Version string        // "10.0.12", "" if not known
	Commit  string        // of the sources that it was built from, in hex, "" if not known
	How     string        // where layouts come from: "descriptor", "table" or "descriptor and table"
	Image   *loader.Image // libcoreclr, coreclr.dll or the single-file executable
	// Lacks has what this program reads and the runtime's contract does not
	// give, as "Thread.Frame". What would be read there counts as missing.
	Lacks []string

	proc *loader.Process
	mem  *loader.Memory
	arch *arch.Arch
	data *contract
	// table leads to the variables and vtables of a runtime that is read by a row;
	// nil for one whose contract has them.
	table *variableTable
	// release is the row of the table of releases that data was laid over.
	release *release
	use     rowUse

	codeLayout   codeLayout
	threadLayout threadLayout
	frameLayout  frameLayout
	replayLayout replayLayout
	replayFrames replayFrames
	exInfo       *exInfoLayout        // nil where it is not known how exceptions in progress are kept
	exLegacy     *exInfoLayout        // of a process that handles them as older releases do; nil if there is none
	exLacks      []string             // what is not known of those
	helpers      *helperLayout        // nil in releases without Frames of helpers
	framesLost   bool                 // a class of Frames is not in frameKinds because the dump lacks what tells it
	frameKinds   map[uint64]FrameKind // by the identifier that a Frame holds
	ranges       arch.Addr            // the RangeSectionMap
	nibbles      nibbleVersion
	stubLast     uint64 // a code header of at most this is a stub's kind
	names        names
	orphans      orphanIndex
	entries      entryIndex
	modules      moduleRanges
}

// descriptorSymbol is exported by every CoreCLR of .NET 9 and later: from
// libcoreclr.so, coreclr.dll, and the executable of a single-file application
// (docs/design/datacontracts/contract-descriptor.md).
const descriptorSymbol = "DotNetRuntimeContractDescriptor"

// Open finds the CoreCLRs in p. A runtime that was found and cannot be read is
// a warning that says why.
func Open(p *loader.Process) (rts []*Runtime, warns []loader.Warning) {
	for _, img := range candidates(p) {
		r, unread, err := open(p, img)
		if unread != nil {
			warns = append(warns, loader.Warning{Code: "descriptor_unreadable", Off: -1,
				Text: fmt.Sprintf("the .NET runtime in %s is read by what is known of its build (%s): %v", img.ID.Name, buildKey(&img.ID), unread)})
		}
		if err != nil {
			warns = append(warns, loader.Warning{Code: "runtime_unreadable", Off: -1,
				Text: fmt.Sprintf("the .NET runtime in %s cannot be read: %v", img.ID.Name, err)})
			continue
		}
		if r != nil {
			warns = append(warns, r.warnings()...)
			rts = append(rts, r)
		}
	}
	return rts, append(warns, refused(p)...)
}

// warnings tells what is not known of r that was opened.
func (r *Runtime) warnings() (warns []loader.Warning) {
	if len(r.Lacks) > 0 {
		warns = append(warns, loader.Warning{Code: "descriptor_partial", Off: -1,
			Text: fmt.Sprintf("the contract of the .NET runtime in %s does not give %s: what lies there counts as missing", r.Image.ID.Name, strings.Join(r.Lacks, ", "))})
	}
	if len(r.exLacks) > 0 {
		warns = append(warns, loader.Warning{Code: "runtime_newer", Off: -1,
			Text: fmt.Sprintf("the .NET runtime in %s, version %s, is newer than those whose exceptions in progress are known, and its contract does not give %s: what a replay says of threads in exceptions may be wrong",
				r.Image.ID.Name, r.Version, strings.Join(r.exLacks, ", "))})
	}
	if r.data.unrecorded || r.proc.Musl() {
		warns = append(warns, loader.Warning{Code: "runtime_unrecorded", Off: -1,
			Text: fmt.Sprintf("no recording of %s on this system and CPU stands behind what is read of the .NET runtime in %s: it has passed the checks that there are", productName(r.Version), r.Image.ID.Name)})
	}
	return warns
}

// runtimeFiles are the names under which a runtime is a file of its own.
var runtimeFiles = []string{"libcoreclr.so", "coreclr.dll", "libcoreclr.dylib"}

// candidates lists the images that may hold a runtime: those named so, or all
// of them, for a single-file application has it linked into its executable.
// Not all are always asked because asking may cost the opening of a file.
func candidates(p *loader.Process) (imgs []*loader.Image) {
	for _, img := range p.Images {
		if slices.Contains(runtimeFiles, img.ID.Name) {
			imgs = append(imgs, img)
		}
	}
	if len(imgs) > 0 {
		return imgs
	}
	// A runtime is native code of its OS; assemblies, which there are many
	// of, are PE files everywhere.
	for _, img := range p.Images {
		if img.Format == p.ABI.NativeFormat {
			imgs = append(imgs, img)
		}
	}
	return imgs
}

// newRuntime returns a runtime of which nothing has been read yet.
func newRuntime(p *loader.Process, img *loader.Image, how string) *Runtime {
	return &Runtime{Image: img, How: how, proc: p, mem: p.Memory, arch: p.Arch}
}

// open reads the runtime in img; nil and no error if there is none. unread says
// what was wrong with a descriptor that the tables of layouts stand in for.
func open(p *loader.Process, img *loader.Image) (r *Runtime, unread, err error) {
	known, err := knownBuild(&img.ID)
	if err != nil {
		return nil, nil, err
	}
	var thin *contract // that says nothing of code, as that of .NET 9
	r = newRuntime(p, img, "descriptor")
	if r.data, unread = r.descriptor(); r.data != nil {
		r.Version, r.Commit = r.version()
		if _, ok := r.data.contracts[codeContract]; !ok {
			thin = r.data
		}
		unread = r.layouts()
	}
	partial := r.data != nil && unread == nil
	switch whole := known != nil && known.Layout != ""; {
	case partial && (len(r.Lacks) == 0 || !whole):
		return r, nil, nil
	case partial:
		unread = fmt.Errorf("its contract does not give %s", strings.Join(r.Lacks, ", "))
	case !whole:
		if by := byDacTable(p, img, thin); by != nil {
			if thin != nil {
				unread = nil
			}
			return by, unread, nil
		}
		return nil, nil, refusal(p, img, unread)
	}
	r = newRuntime(p, img, "table")
	r.Version, r.Commit = known.Version, known.Commit
	if r.data, err = known.contract(img.Bias()); err != nil {
		return nil, nil, err
	}
	return r, unread, r.layouts()
}

// codeContract is the contract of where code lies and how it is described.
const codeContract = "ExecutionManager"

// codeRanges is the global that is the map of code.
const codeRanges = "ExecutionManagerCodeRangeMapAddress"

// layouts resolves what every look-up needs, once.
func (r *Runtime) layouts() error {
	if _, ok := r.data.contracts[codeContract]; !ok {
		return fmt.Errorf("its contract has no ExecutionManager, and no release whose layouts are known fits it")
	}
	r.release, r.use = releaseOf(r.Version)
	refused := r.release.lay(r.data, r.use)
	lacks := r.data.fill(&r.codeLayout)
	if i := slices.IndexFunc(lacks, neededField); i >= 0 {
		return fmt.Errorf("its contract does not give %s", lacks[i])
	}
	if slices.Contains(lacks, "Bucket.!") {
		r.codeLayout.HashBuckets = nowhere // the buckets cannot be told apart
	}
	lost := r.data.fill(&r.frameLayout)
	r.frameLayout.registers(r.data, r.arch)
	r.helpers = helperFields(r.data, r.arch)
	lacks = append(lacks, r.data.fill(&r.threadLayout)...)
	var none []string
	r.names, none = newNames(r)
	lacks = append(lacks, none...)
	if r.table != nil {
		lacks = append(lacks, r.table.anchor()...)
	}
	var ok bool
	if r.ranges, ok = r.data.pointer(codeRanges); !ok {
		if r.table == nil || !r.leadsToModules() {
			return fmt.Errorf("its contract does not say where its code ranges are")
		}
		lacks = append(lacks, codeRanges) // ReadyToRun code is found by its Modules
	}
	if r.stubLast, ok = r.data.global("StubCodeBlockLast"); !ok {
		return fmt.Errorf("its contract does not say which headers of code are those of stubs")
	}
	if r.nibbles, ok = nibbleVersions[strings.TrimPrefix(r.data.contracts[codeContract], "c")]; !ok {
		return fmt.Errorf("its ExecutionManager contract is of version %s, which this program does not know", r.data.contracts[codeContract])
	}
	lacks = append(lacks, r.kinds(lost)...)
	lacks = append(lacks, r.data.fill(&r.replayLayout)...)
	lacks = append(lacks, r.data.fill(&r.replayFrames)...)
	r.layExInfo()
	r.Lacks = nil
	for _, name := range append(lacks, refused...) {
		if !slices.Contains(r.Lacks, name) {
			r.Lacks = append(r.Lacks, name)
		}
	}
	return nil
}

// kinds finds the identifiers of the classes of Frames. lost are the fields of Frames
// whose place is not known; lacks are those of classes that this release has.
func (r *Runtime) kinds(lost []string) (lacks []string) {
	r.frameKinds = make(map[uint64]FrameKind, len(frameNames))
	absent := make(map[string]bool, len(frameNames))
	for k, name := range frameNames {
		if id, ok := r.data.global(name + "Identifier"); ok && name != "" {
			r.frameKinds[id] = FrameKind(k)
		} else {
			absent[name] = true
		}
	}
	for _, name := range lost {
		if typ, _, _ := strings.Cut(name, "."); !absent[typ] {
			lacks = append(lacks, name)
		}
		r.dropFrames(name)
	}
	return lacks
}

// neededField reports whether a field is one without which no managed code can
// be found.
func neededField(name string) bool {
	typ, _, _ := strings.Cut(name, ".")
	return slices.Contains([]string{"RangeSectionMap", "RangeSectionFragment", "RangeSection", "CodeHeapListNode"}, typ)
}

// dropFrames forgets the kinds of Frames that a field is of whose place is not
// known: they are passed over.
func (r *Runtime) dropFrames(name string) {
	typ, _, _ := strings.Cut(name, ".")
	for id, kind := range r.frameKinds {
		is := frameNames[kind] == typ
		switch typ {
		case "FramedMethodFrame", "TransitionBlock":
			is = kind.transition()
		case "HijackArgs":
			is = kind == HijackFrame
		case "ResumableFrame":
			is = kind == ResumableFrame || kind == RedirectedThreadFrame
		}
		if is {
			delete(r.frameKinds, id)
		}
	}
}

// The descriptor's structure, 64-bit (docs/design/datacontracts/contract-descriptor.md).
const (
	descriptorMagic    = 0x0043414443434e44 // "DNCCDAC\0" as the bytes lie in memory
	descriptorSize     = 40
	descriptorTextSize = 12
	descriptorText     = 16
	descriptorPtrCount = 24
	descriptorPtrs     = 32
)

// descriptor reads the contract descriptor; nil and no error if the image has
// none, or if neither the dump nor a file has its bytes.
func (r *Runtime) descriptor() (*contract, error) {
	at, _, ok := r.Image.Lookup(descriptorSymbol)
	if !ok {
		return nil, nil
	}
	head := r.linked(at, descriptorSize)
	if head == nil {
		return nil, nil
	}
	if binary.LittleEndian.Uint64(head) != descriptorMagic {
		return nil, fmt.Errorf("its contract descriptor at %v has no magic number", at)
	}
	size := binary.LittleEndian.Uint32(head[descriptorTextSize:])
	count := binary.LittleEndian.Uint32(head[descriptorPtrCount:])
	if size > maxDescriptor || count > maxPointers {
		return nil, fmt.Errorf("its contract descriptor at %v claims %d bytes and %d pointers", at, size, count)
	}
	textAt := arch.Addr(binary.LittleEndian.Uint64(head[descriptorText:]))
	var text []byte
	if img := r.proc.ImageAt(textAt); img != nil {
		text = img.Constant(textAt, int(size))
	}
	if text == nil {
		return nil, fmt.Errorf("the text of its contract descriptor, %d bytes at %v, is not at hand", size, textAt)
	}
	ptrsAt := arch.Addr(binary.LittleEndian.Uint64(head[descriptorPtrs:]))
	raw := r.linked(ptrsAt, int(8*count))
	if raw == nil && count > 0 {
		return nil, fmt.Errorf("the pointers of its contract descriptor, %d at %v, are not at hand", count, ptrsAt)
	}
	ptrs := make([]uint64, count)
	for i := range ptrs {
		ptrs[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return parseContract(bytes.TrimRight(text, "\x00"), ptrs)
}

// linked returns n bytes that do not change once the runtime is loaded: as
// the dump has them, else as the image's file has them after relocation.
// createdump leaves out the descriptor, which lies in writable memory.
func (r *Runtime) linked(a arch.Addr, n int) []byte {
	if b := r.mem.View(a, n); b != nil {
		return b
	}
	if img := r.proc.ImageAt(a); img != nil {
		return img.FileView(a, n)
	}
	return nil
}

// linkedByte is linked for one byte.
func (r *Runtime) linkedByte(a arch.Addr) (uint8, bool) {
	b := r.linked(a, 1)
	if b == nil {
		return 0, false
	}
	return b[0], true
}

// Bounds of the text that has a runtime's version.
const (
	versionMark = "@(#)Version "
	commitMark  = "@Commit: "
	maxVersion  = 160 // bytes of the text; shipped ones have 80
)

// version finds the runtime's version and commit in the text that every build of it
// holds, "@(#)Version 10.0.1226.42308 @Commit: ...", where the last two digits
// of the third number are the year; "" if it is not at hand.
func (r *Runtime) version() (version, commit string) {
	_, text, ok := bytes.Cut(r.Image.Section(".data"), []byte(versionMark))
	if ok {
		if version, commit = parseVersion(text); version != "" {
			return version, commit
		}
	}
	if known, _ := knownBuild(&r.Image.ID); known != nil {
		return known.Version, known.Commit
	}
	return "", ""
}

// parseVersion reads what follows versionMark, up to the byte that ends the text.
func parseVersion(text []byte) (version, commit string) {
	text = text[:min(len(text), maxVersion)]
	end := bytes.IndexFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
	if end < 0 {
		return "", ""
	}
	numbers, rest, _ := strings.Cut(string(text[:end]), " ")
	part := strings.Split(numbers, ".")
	if len(part) < 4 {
		return "", ""
	}
	var n [3]uint64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseUint(part[i], 10, 32); err != nil {
			return "", ""
		}
	}
	if _, id, ok := strings.Cut(rest, commitMark); ok {
		id, _, _ = strings.Cut(id, " ")
		if len(id) >= 7 && strings.Trim(id, "0123456789abcdef") == "" {
			commit = id
		}
	}
	return fmt.Sprintf("%d.%d.%d", n[0], n[1], n[2]/100), commit
}

// major returns the first number of the version, 0 if that is not known.
func (r *Runtime) major() int {
	first, _, _ := strings.Cut(r.Version, ".")
	n, _ := strconv.Atoi(first)
	return n
}

// u8 to word read the memory of the process; ok is false where a byte is missing.

func (r *Runtime) u8(a arch.Addr) (uint8, bool) {
	b := r.mem.View(a, 1)
	if b == nil {
		return 0, false
	}
	return b[0], true
}

func (r *Runtime) u16(a arch.Addr) (uint16, bool) {
	b := r.mem.View(a, 2)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint16(b), true
}

func (r *Runtime) u32(a arch.Addr) (uint32, bool) {
	b := r.mem.View(a, 4)
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

func (r *Runtime) word(a arch.Addr) (uint64, bool) { return r.mem.Word(a) }

// missing returns which of the n bytes at a is the first that is not at hand.
func (r *Runtime) missing(a arch.Addr, n int) arch.Addr { return arch.FirstMissing(r.mem, a, n) }

// field returns the address of the field off bytes into the structure at a.
func field(a arch.Addr, off int) arch.Addr { return a + arch.Addr(off) }
