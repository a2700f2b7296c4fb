package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/report"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/profiler"
	"github.com/seamwalk/seam/unwind"
	"github.com/spf13/cobra"
)

// snapshotFlags are the flags of snapshot.
type snapshotFlags struct {
	shared
	mode        string
	flags       uint32
	seed        string
	contextSize uint32
	abortAfter  int
	requests    string
}

func newSnapshot() *cobra.Command {
	var f snapshotFlags
	cmd := &cobra.Command{
		Use:   "snapshot DUMP",
		Short: "What DoStackSnapshot would report of every managed thread",
		Long: `Snapshot replays ICorProfilerInfo2::DoStackSnapshot for every managed thread: it
makes the callbacks that the runtime itself would have made in the process, in
their order, with their registers, and returns its HRESULT. What the runtime
hides is hidden: explicit Frames, IL stubs, dynamic methods, funclets, and the
native frames before the first managed one.

The mode says who walks the thread:
  self          it walks itself, in a callback or in native code that it called
  suspended     another thread does, after SuspendRuntime
  os-suspended  another thread does, without; Windows only
Without --mode a thread in preemptive mode is walked as suspended, one in
cooperative mode as os-suspended on Windows and as self elsewhere.

A seed is the register context that the walk is to start from: a file with a
CONTEXT, its bytes in hex, or auto for the one that seam seed computes.

A file of requests has a JSON object a line:
  {"walk": "any label", "os_tid": 1240, "flags": 1, "mode": "self",
   "seed": "<hex CONTEXT>" or null, "context_size": 0, "abort_after": 0}
and each is answered by its callbacks and its result, under its label. It may
carry what the dump cannot tell: "in_syscall": true or false.`,
		Example: `  seam snapshot core.1234
  seam snapshot core.1234 --thread 1240 --mode self --seed auto
  seam snapshot core.1234 --format jsonl --requests calls.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.dumpFlags(cmd, "a walk ends early because the dump lacks what it\nreads, or there is no call")
	f.threadFlag(cmd)
	f.limitFlag(cmd, "callbacks of a call")
	f.formatFlag(cmd, "stack pointers and FunctionIDs", "text", "jsonl")
	f.symbolFlags(cmd)
	f.widthFlag(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.mode, "mode", "", "who walks: `MODE` is self, suspended or os-suspended")
	completes(cmd, "mode", profiler.Self.String(), profiler.Suspended.String(), profiler.OSSuspended.String())
	fs.Uint32Var(&f.flags, "flags", profiler.COR_PRF_SNAPSHOT_REGISTER_CONTEXT, "infoFlags of the call")
	fs.StringVar(&f.seed, "seed", "", "start from `CTX`: a file, hex, or auto")
	fs.Uint32Var(&f.contextSize, "context-size", 0, "contextSize of the call, which the runtime does not look at")
	fs.IntVar(&f.abortAfter, "abort-after", 0, "the `K`-th callback answers other than S_OK; 0: none")
	fs.StringVar(&f.requests, "requests", "", "replay the calls that `FILE` asks for; - is standard input")
	for _, one := range []string{"thread", "mode", "flags", "seed", "context-size", "abort-after"} {
		cmd.MarkFlagsMutuallyExclusive("requests", one) // a request says it itself
	}
	return cmd
}

func (f *snapshotFlags) run(cmd *cobra.Command, path string) error {
	style, err := f.style(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	w := buffered(cmd)
	out, err := report.NewSnapshots(w, f.format, style)
	if err != nil {
		return err
	}
	if f.abortAfter < 0 {
		return misuse("--abort-after %d: not a number of callbacks", f.abortAfter)
	}
	r, err := f.openReplayer(cmd, path, f.mode)
	if err != nil {
		return err
	}
	defer r.d.Close()
	r.names = f.format == "text" // the other form has none
	if err := out.Begin(r.d.head()); err != nil {
		return err
	}
	calls, whole := 0, true
	each := func(q *request) error {
		s := r.call(q)
		calls, whole = calls+1, whole && s.Whole()
		return out.Call(s)
	}
	if cmd.Flags().Changed("requests") {
		err = eachRequest(f.requests, cmd.InOrStdin(), each)
	} else {
		err = f.eachThread(cmd, r, each)
	}
	if err == nil {
		err = out.End(r.d.stacks.Summary())
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		return err
	}
	if r.failed == nil && f.strict && (calls == 0 || !whole) {
		return errStrict
	}
	return r.failed
}

// A request is a line of --requests.
type request struct {
	Walk        string
	TID         uint32 `json:"os_tid"`
	Flags       uint32
	Mode        string
	Seed        *string // hex
	ContextSize uint32  `json:"context_size"`
	AbortAfter  int     `json:"abort_after"`
	InSyscall   *bool   `json:"in_syscall"`

	context []byte
}

// eachThread makes the requests that the flags ask for.
func (f *snapshotFlags) eachThread(cmd *cobra.Command, r *replayer, do func(*request) error) error {
	var given []byte
	if cmd.Flags().Changed("seed") && f.seed != "auto" {
		var err error
		if given, err = readContext(f.seed); err != nil {
			return fmt.Errorf("--seed: %w", err)
		}
	}
	for _, t := range r.d.selected {
		m, rt := r.d.session.Thread(t.ID)
		if m == nil && len(f.threads) == 0 {
			continue
		}
		q := &request{TID: t.ID, Flags: f.flags, Mode: f.mode, ContextSize: f.contextSize, AbortAfter: f.abortAfter, context: given}
		if f.seed == "auto" {
			n, err := r.snapshotter(rt)
			if err != nil {
				return err
			}
			if found := n.FindSeed(t); found.Seed != nil {
				q.context = found.Seed.Context
			}
		}
		if err := do(q); err != nil {
			return err
		}
	}
	return nil
}

// maxRequest bounds a line of a file of requests: a CONTEXT in hex is 6 KB.
const maxRequest = 1 << 20

// eachRequest reads a file of requests.
func eachRequest(path string, stdin io.Reader, do func(*request) error) error {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("--requests: %w", err)
		}
		defer file.Close()
		in = file
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, maxRequest)
	for line := 1; sc.Scan(); line++ {
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		var q request
		err := json.Unmarshal(sc.Bytes(), &q)
		if err == nil && q.Seed != nil {
			q.context, err = hex.DecodeString(*q.Seed)
		}
		if err == nil && q.Mode != "" {
			_, err = profiler.ParseMode(q.Mode)
		}
		if err != nil {
			return fmt.Errorf("--requests: line %d: %w", line, err)
		}
		if err := do(&q); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("--requests: %w", err)
	}
	return nil
}

// readContext reads a CONTEXT given as a file's name or in hex.
func readContext(s string) ([]byte, error) {
	if b, err := hex.DecodeString(strings.TrimPrefix(s, "0x")); err == nil && len(b) > 0 {
		return b, nil
	}
	b, err := os.ReadFile(s)
	if err != nil {
		return nil, fmt.Errorf("%q is neither hex nor a file: %w", s, err)
	}
	if text, err := hex.DecodeString(strings.TrimSpace(string(b))); err == nil {
		return text, nil
	}
	return b, nil
}

// openReplayer opens the dump at path for replays, whose --mode is mode. The caller
// closes the replayer's dump.
func (f *shared) openReplayer(cmd *cobra.Command, path, mode string) (*replayer, error) {
	if cmd.Flags().Changed("mode") {
		if _, err := profiler.ParseMode(mode); err != nil {
			return nil, misuse("--mode: %v", err)
		}
	}
	d, err := f.open(path)
	if err != nil {
		return nil, err
	}
	r, err := newReplayer(d)
	if err != nil {
		d.Close()
	}
	return r, err
}

// A replayer replays calls over a dump.
type replayer struct {
	d      *dump
	names  bool         // name the callbacks
	first  *clr.Runtime // of the process
	by     map[*clr.Runtime]*profiler.Snapshotter
	failed error // of the first call that could not be made
}

func newReplayer(d *dump) (*replayer, error) {
	first, err := profiler.RuntimeOf(d.session)
	if err != nil {
		return nil, err
	}
	return &replayer{d: d, first: first, by: map[*clr.Runtime]*profiler.Snapshotter{}}, nil
}

// snapshotter returns the snapshotter for a thread of the runtime rt. For a thread
// of none, or of a runtime without DoStackSnapshot, it is that of the first CoreCLR,
// which answers as it does for any thread that it does not know.
func (r *replayer) snapshotter(rt code.Runtime) (*profiler.Snapshotter, error) {
	core, ok := rt.(*clr.Runtime)
	if !ok {
		core = r.first
	}
	if n := r.by[core]; n != nil {
		return n, nil
	}
	n, err := profiler.NewFor(r.d.session, core)
	r.by[core] = n
	return n, err
}

// thread returns the dump's thread of a TID, or nil.
func (r *replayer) thread(tid uint32) *loader.Thread {
	for i := range r.d.Threads {
		if t := &r.d.Threads[i]; t.ID == tid {
			return t
		}
	}
	return nil
}

// call replays the call that q asks for. A call that cannot be made is in the
// result's Error, and the first of these in r.failed.
func (r *replayer) call(q *request) *report.Snapshot {
	s := &report.Snapshot{Walk: q.Walk, Flags: q.Flags, Seeded: q.context != nil}
	s.Thread.TID = q.TID
	t := r.thread(q.TID)
	if t == nil {
		return r.refuse(s, fmt.Errorf("the dump has no thread %d", q.TID))
	}
	s.Thread = r.d.stacks.Thread(t)
	m, rt := r.d.session.Thread(q.TID)
	n, err := r.snapshotter(rt)
	if err != nil {
		return r.refuse(s, err)
	}
	s.Mode = r.mode(q, m)
	req := profiler.Request{TID: q.TID, Mode: s.Mode, Flags: q.Flags, Context: q.context, ContextSize: q.ContextSize, InSyscall: q.InSyscall}
	if m != nil {
		s.ThreadID = profiler.ThreadID(m.Addr)
		if s.Mode != profiler.Self {
			req.Thread = s.ThreadID
		}
	}
	a, limit := r.d.Arch, r.d.limit
	s.HR = n.Do(req, func(c profiler.Call) profiler.HRESULT {
		out := report.SnapshotCall{Function: c.Function, IP: c.IP, ContextSize: c.ContextSize}
		if regs, err := c.Registers(); err == nil {
			pc, _ := regs.Get(a.PC)
			sp, _ := regs.Get(a.SP)
			fp, _ := regs.Get(a.FP)
			out.PC, out.SP, out.FP = arch.Addr(pc), arch.Addr(sp), arch.Addr(fp)
		}
		if ctx, err := c.Context(); err == nil && ctx != nil {
			out.Context = append([]byte(nil), ctx...)
		}
		if s.Made++; limit == 0 || s.Made <= limit {
			s.Calls = append(s.Calls, out)
		}
		if s.Made == q.AbortAfter {
			return profiler.S_FALSE
		}
		return profiler.S_OK
	})
	why := n.Why()
	s.Why, s.Missing = why.String(), why.Missing
	if r.names {
		r.d.nameCalls(s, t)
	}
	return s
}

// mode returns the mode that q asks for. If it asks for none, that is the mode that
// a walk of the thread m would have in the state that m is in.
func (r *replayer) mode(q *request, m *code.Thread) profiler.Mode {
	if q.Mode != "" {
		mode, _ := profiler.ParseMode(q.Mode) // checked when it was read
		return mode
	}
	return profiler.ModeFor(r.d.ABI, m)
}

func (r *replayer) refuse(s *report.Snapshot, err error) *report.Snapshot {
	s.Error = err.Error()
	if r.failed == nil {
		r.failed = err
	}
	return s
}

// nameCalls names the callbacks of s, a replayed call for t.
func (d *dump) nameCalls(s *report.Snapshot, t *loader.Thread) {
	frames := make([]managed.Frame, len(s.Calls))
	for i := range s.Calls {
		c, f := &s.Calls[i], &frames[i]
		f.PC, f.SP = arch.PC{Addr: c.IP}, c.SP
		if c.Function != 0 {
			f.Kind = managed.Managed
			f.Code, f.Runtime = d.session.Lookup(c.IP)
		}
	}
	named := d.stacks.Describe(t, frames, unwind.Stop{Reason: unwind.EndOfStack})
	for i := range s.Calls {
		s.Calls[i].Name = *named.Frames[i].Place
	}
}
