package loader

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// Types of notes in a core (include/uapi/linux/elf.h).
const (
	ntPRStatus = 1
	ntFPRegs   = 2
	ntPRPSInfo = 3
	ntAuxv     = 6
	ntSigInfo  = 0x53494749
	ntFile     = 0x46494c45
	ntARMTLS   = 0x401 // name "LINUX": TPIDR_EL0, after its thread's NT_PRSTATUS
)

// Types of entries in the auxiliary vector (include/uapi/linux/auxvec.h).
const (
	atPhdr     = 3
	atPhnum    = 5
	atBase     = 7
	atEntry    = 9
	atPlatform = 15
	atRandom   = 25
	atExecFn   = 31
	atSysInfo  = 33 // AT_SYSINFO_EHDR: where the vDSO lies
)

// coreNotes is what the notes say that is needed to find the images.
type coreNotes struct {
	auxv  map[uint64]uint64
	files []fileNote
}

// A fileNote is one entry of NT_FILE: a range mapped from a file.
type fileNote struct {
	arch.Span
	off  uint64 // bytes
	path string
}

// readNotes reads one PT_NOTE segment. A core may have several, which together
// are no longer than the file.
func (c *core) readNotes(ph objfile.Prog) {
	if c.noted > uint64(len(c.data)) {
		return
	}
	b := c.data[min(ph.Off, uint64(len(c.data))):]
	if uint64(len(b)) < ph.Filesz {
		c.p.warn("core_cut", int64(len(c.data)), "the file ends within its notes: %d of %d bytes are there", len(b), ph.Filesz)
	} else {
		b = b[:ph.Filesz]
	}
	if c.noted += uint64(len(b)); c.noted > uint64(len(c.data)) {
		c.p.warn("note_bad", int64(ph.At), "the segments of notes lie over one another; no more of them are read")
		return
	}
	c.p.core.notes = append(c.p.core.notes, b)
	c.current = 0
	broken := objfile.EachNote(b, int64(ph.Off), func(n objfile.Note) bool {
		c.readNote(n)
		return len(c.p.Threads) < c.opt.Limits.Threads
	})
	if broken >= 0 {
		c.p.warn("note_bad", broken, "a note goes past the end of its segment; what follows it is not read")
	}
	if len(c.p.Threads) >= c.opt.Limits.Threads {
		c.p.warn("limit", int64(ph.Off), "only the first %d threads are read", len(c.p.Threads))
	}
	if cr := c.p.Crash; cr != nil && cr.Thread == 0 && len(c.p.Threads) > 0 {
		// Who writes NT_SIGINFO before any thread means the first one.
		cr.Thread = c.p.Threads[0].ID
	}
}

// readNote reads one note.
func (c *core) readNote(n objfile.Note) {
	switch {
	case n.Name == seamNote:
		c.keptNote(n)
	case n.Name == "LINUX" && n.Type == ntARMTLS && len(n.Desc) >= 8 && len(c.p.Threads) > 0:
		c.p.Threads[len(c.p.Threads)-1].TLS = arch.Addr(binary.LittleEndian.Uint64(n.Desc))
	case n.Name != "CORE":
		for _, f := range foreignNotes {
			if strings.HasPrefix(n.Name, f.note) {
				c.system = f.system
			}
		}
	case n.Type == ntPRStatus:
		c.current = c.thread(n)
	case n.Type == ntPRPSInfo:
		c.psinfo(n)
	case n.Type == ntAuxv:
		c.auxv(n)
	case n.Type == ntFile:
		c.fileNotes(n)
	case n.Type == ntSigInfo:
		c.sigInfo(n, c.current)
	}
}

// thread reads struct elf_prstatus: pr_cursig at 12, pr_pid at 32, and the
// registers where the CPU has them.
func (c *core) thread(n objfile.Note) uint32 {
	lay := &c.p.ABI.PRStatus
	if len(n.Desc) < lay.Size {
		c.p.warn("note_bad", n.Off, "an NT_PRSTATUS note of %d bytes; a thread of this CPU has %d", len(n.Desc), lay.Size)
		return 0
	}
	t := Thread{ID: binary.LittleEndian.Uint32(n.Desc[32:])}
	for _, f := range lay.Fields {
		t.Regs.Set(f.Reg, binary.LittleEndian.Uint64(n.Desc[f.Off:]))
	}
	if off := c.p.ABI.TLSOffset; off != 0 && off+8 <= len(n.Desc) {
		t.TLS = arch.Addr(binary.LittleEndian.Uint64(n.Desc[off:]))
	}
	c.p.Threads = append(c.p.Threads, t)
	if sig := binary.LittleEndian.Uint16(n.Desc[12:]); c.p.Crash == nil && sig != 0 && sig != sigStop {
		// qemu writes no NT_SIGINFO; the signal's number is all there is.
		c.p.Crash = &Crash{Thread: t.ID, Signal: uint32(sig)}
	}
	return t.ID
}

const sigStop = 19

// faults are the signals whose siginfo_t has si_addr, when the kernel sent
// them: SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV.
const faults = 1<<4 | 1<<5 | 1<<7 | 1<<8 | 1<<11

// siKernel is SI_KERNEL, the si_code of a signal for which the kernel fills in
// nothing else (force_sig of linux/kernel/signal.c): a general protection fault,
// as at an address that is not canonical, has no address in siginfo_t.
const siKernel = 0x80

// sigInfo reads siginfo_t: si_signo at 0, si_code at 8, si_addr at 16.
func (c *core) sigInfo(n objfile.Note, tid uint32) {
	if len(n.Desc) < 24 {
		c.p.warn("note_bad", n.Off, "an NT_SIGINFO note of %d bytes", len(n.Desc))
		return
	}
	cr := Crash{Thread: tid, Signal: binary.LittleEndian.Uint32(n.Desc), Code: int32(binary.LittleEndian.Uint32(n.Desc[8:]))}
	if cr.Signal < 64 && faults>>cr.Signal&1 != 0 && cr.Code > 0 && cr.Code != siKernel {
		cr.Address, cr.HasAddr = arch.Addr(binary.LittleEndian.Uint64(n.Desc[16:])), true
	}
	// gcore writes one for each thread, SIGSTOP being its own doing. A second
	// one of the same thread is a copy; the first thread's is the process's.
	old := c.p.Crash
	if cr.Signal == 0 || cr.Signal == sigStop || old != nil && (old.Thread != tid || old.Code != 0 || old.HasAddr) {
		return
	}
	c.p.Crash = &cr
}

// psinfo reads struct elf_prpsinfo: pr_pid at 24, pr_fname at 40.
func (c *core) psinfo(n objfile.Note) {
	if len(n.Desc) < 56 {
		c.p.warn("note_bad", n.Off, "an NT_PRPSINFO note of %d bytes", len(n.Desc))
		return
	}
	c.p.PID = int(int32(binary.LittleEndian.Uint32(n.Desc[24:])))
	c.p.Name = bin.CString(append(slices.Clone(n.Desc[40:56]), 0), 0)
}

func (c *core) auxv(n objfile.Note) {
	r := bin.New("NT_AUXV", n.Desc)
	if c.notes.auxv == nil {
		c.notes.auxv = map[uint64]uint64{}
	}
	// 512 is more than any kernel gives (fewer than 60).
	for i := 0; r.Len() >= 16 && i < 512; i++ {
		k, v := r.U64(), r.U64()
		if k == 0 {
			break
		}
		c.notes.auxv[k] = v
	}
}

// fileNotes reads NT_FILE: a count and a page size, then start, end and file
// offset in pages of each mapping, then the paths (fs/binfmt_elf.c).
func (c *core) fileNotes(n objfile.Note) {
	r := bin.New("NT_FILE", n.Desc)
	count, page := r.U64(), r.U64()
	num := r.Count(count, 24)
	if r.Err() != nil || page == 0 || page > 1<<24 {
		c.p.warn("note_bad", n.Off, "NT_FILE claims %d mappings in %d bytes, pages of %#x bytes: it is not read", count, len(n.Desc), page)
		return
	}
	names := n.Desc[16+24*num:]
	out := make([]fileNote, 0, num)
	for range num {
		f := fileNote{Span: arch.Span{Lo: arch.Addr(r.U64()), Hi: arch.Addr(r.U64())}}
		pages := r.U64()
		f.off = pages * page
		end := bytes.IndexByte(names, 0)
		if end < 0 {
			c.p.warn("note_bad", n.Off, "NT_FILE has paths for %d of %d mappings", len(out), num)
			break
		}
		f.path, names = string(names[:end]), names[end+1:]
		if f.Lo >= f.Hi {
			continue
		}
		if pages > math.MaxInt64/page || uint64(f.Hi-f.Lo) > math.MaxInt64-f.off {
			c.p.warn("note_bad", n.Off, "NT_FILE has %s mapped at %v from page %#x on, which no file has", f.path, f.Span, pages)
			continue
		}
		out = append(out, f)
	}
	c.notes.files = append(c.notes.files, out...)
}
