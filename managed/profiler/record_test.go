package profiler

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/seamwalk/seam/internal/corpus"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

// openCase opens the dump of a recorded case.
func openCase(t testing.TB, name, dump string) *managed.Session {
	t.Helper()
	dir := corpus.Path(t)
	p, err := loader.Open(filepath.Join(dir, name, dump), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return managed.Open(p, nil)
}

// openCaseFor is openCase for a session that subtests share.
func openCaseFor(t testing.TB, name, dump string) *managed.Session {
	t.Helper()
	p, err := loader.Open(filepath.Join(corpus.Path(t), name, dump), nil)
	if err != nil {
		t.Fatal(err)
	}
	return managed.Open(p, nil)
}

// A recorded is one line of record.jsonl that the tests look at.
type recorded struct {
	Ev, Walk, Event, Mode, Seed, HR string
	Func, IP, PC, SP, FP, Ctx       string
	Cflags                          string
	OSTID                           uint32 `json:"os_tid"`
	Flags                           uint32
	Frames                          int
	CtxSize                         uint32 `json:"ctx_size"`
	Size                            int64
	Parked                          bool
	RBX, R12, R13, R14, R15         string
	What                            string
	IP1, IP2, IP3                   []string
	N1                              []string `json:"native_ip1"`
	N2                              []string `json:"native_ip2"`
	N3                              []string `json:"native_ip3"`
	Name                            string
}

// A recordedWalk is a call of the real DoStackSnapshot.
type recordedWalk struct {
	recorded
	frames []recorded
	seed   []byte
}

// A record is what the recorder wrote of a process.
type record struct {
	walks  []*recordedWalk
	byName map[string]*recordedWalk
	still  map[uint32]string // what a thread stands still in, by TID
	ips    []recorded
}

func readRecord(t testing.TB, name string) *record {
	t.Helper()
	f, err := os.Open(filepath.Join(corpus.Path(t), name, "record.jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	r := &record{byName: map[string]*recordedWalk{}, still: map[uint32]string{}}
	frames, seeds := map[string][]recorded{}, map[string][]byte{}
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		if bytes.HasPrefix(sc.Bytes(), []byte(`{"ev":"name"`)) {
			continue
		}
		var d recorded
		if err := json.Unmarshal(sc.Bytes(), &d); err != nil {
			if bytes.Contains(sc.Bytes(), []byte(`"ev":"walk"`)) || bytes.Contains(sc.Bytes(), []byte(`"ev":"frame"`)) {
				t.Fatalf("%v: %.200s", err, sc.Bytes())
			}
			continue
		}
		switch d.Ev {
		case "frame":
			frames[d.Walk] = append(frames[d.Walk], d)
		case "seed":
			seeds[d.Walk], _ = hex.DecodeString(d.Ctx)
		case "walk":
			w := &recordedWalk{recorded: d, frames: frames[d.Walk], seed: seeds[d.Walk]}
			r.walks = append(r.walks, w)
			r.byName[d.Walk] = w
		case "park":
			r.still[d.OSTID] = d.Name
		case "event":
			if d.Parked {
				r.still[d.OSTID] = d.Walk
			}
		case "ip":
			r.ips = append(r.ips, d)
		}
	}
	return r
}

var (
	ofSuspended = regexp.MustCompile(`^t\d+/`)
	notReplayed = regexp.MustCompile(`^(nested|null-callback|sp-limit)`)
	abortAfter  = regexp.MustCompile(`^(?:stop-(?:sfalse|efail|abort|\d+)|abort-after|abort)-(\d+)$`)
)

// request makes of a recorded call the request that repeats it over the dump;
// ok is false if the dump does not hold its situation any more.
func (r *record) request(w *recordedWalk) (req Request, abort int, ok bool) {
	_, kind, _ := cutLast(w.Walk, "/")
	req = Request{TID: w.OSTID, Flags: w.Flags}
	switch still := r.still[w.OSTID]; {
	case ofSuspended.MatchString(w.Walk):
		req.Mode = Suspended
	case still != "" && strings.HasPrefix(w.Walk, still+"/"):
		req.Mode = Self
	default:
		return req, 0, false
	}
	if notReplayed.MatchString(kind) || w.Seed != "none" && w.seed == nil {
		return req, 0, false
	}
	if w.Seed != "none" {
		req.Context = w.seed
	}
	if m := abortAfter.FindStringSubmatch(kind); m != nil {
		abort, _ = strconv.Atoi(m[1])
	}
	return req, abort, true
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func hexNumber(s string) uint64 {
	v, _ := strconv.ParseUint(s, 0, 64)
	return v
}

// replay makes a recorded call over the dump and says how it differs.
func replay(n *Snapshotter, r *record, w *recordedWalk) (diffs []string, ok bool) {
	req, abort, ok := r.request(w)
	if !ok {
		return nil, false
	}
	// The same thread's walk in the instant of the dump: objects that moved
	// since w are at their new places there, as in the dump.
	later := r.byName[fmt.Sprintf("t%d/context", w.OSTID)]
	i := 0
	hr := n.Do(req, func(c Call) HRESULT {
		if i < len(w.frames) {
			var same *recorded
			if later != nil && i < len(later.frames) {
				same = &later.frames[i]
			}
			diffs = append(diffs, compare(n, &c, &w.frames[i], same, i)...)
		}
		i++
		if i == abort {
			return S_FALSE
		}
		return S_OK
	})
	if n.Why().Missing {
		// The dump lacks what a frame of this call needs: the callbacks before it count.
		return diffs, true
	}
	if want := HRESULT(hexNumber(w.HR)); hr != want {
		diffs = append(diffs, fmt.Sprintf("%v %s (%v), the runtime said %v", hr, hr.Name(), n.Why(), want))
	}
	if i != w.Frames {
		diffs = append(diffs, fmt.Sprintf("%d callbacks, the runtime made %d", i, w.Frames))
	}
	return diffs, true
}

// compare says how a callback differs from a recorded one.
func compare(n *Snapshotter, c *Call, f, later *recorded, i int) (diffs []string) {
	regs, err := c.Registers()
	if err != nil {
		return []string{err.Error()}
	}
	check := func(what string, got, want uint64) {
		if got != want {
			diffs = append(diffs, fmt.Sprintf("callback %d: %s %#x, the runtime said %#x", i, what, got, want))
		}
	}
	check("function", uint64(c.Function), hexNumber(f.Func))
	check("ip", uint64(c.IP), hexNumber(f.IP))
	if info, err := c.FrameInfo(); err != nil || info != (FrameInfo{Size: 40, Version: 1, Function: c.Function, IP: c.IP}) {
		diffs = append(diffs, fmt.Sprintf("callback %d: frame info %+v, %v", i, info, err))
	}
	if f.SP != "" {
		check("sp", uint64(n.spOf(regs)), hexNumber(f.SP))
	}
	if f.FP != "" {
		fp, _ := regs.Get(n.a.FP)
		check("fp", fp, hexNumber(f.FP))
	}
	check("size of the context", uint64(c.ContextSize), uint64(f.CtxSize))
	ctx, _ := c.Context()
	if f.CtxSize == 0 || len(ctx) != int(f.CtxSize) {
		return diffs
	}
	var got arch.Regs
	flags := n.ctx.read(ctx, &got)
	want, wantFlags, ok := f.registers(n)
	moved, _, _ := later.registers(n)
	if ok {
		check("ContextFlags", uint64(flags), uint64(wantFlags))
	} else if f.Cflags != "" {
		check("ContextFlags", uint64(flags), hexNumber(f.Cflags))
	}
	for r := arch.Reg(0); ok && r < arch.MaxRegs; r++ {
		x, _ := got.Get(r)
		y, _ := want.Get(r)
		if z, known := moved.Get(r); (n.s.Process.ABI.CalleeSaved.Has(r) || r == n.a.LR) && !(known && x == z) {
			check(n.a.RegName(r), x, y)
		}
	}
	return diffs
}

// registers returns those of the recorded CONTEXT, if it was recorded.
func (f *recorded) registers(n *Snapshotter) (regs arch.Regs, flags uint32, ok bool) {
	if f == nil {
		return regs, 0, false
	}
	b, _ := hex.DecodeString(f.Ctx)
	if len(b) < n.ctx.need() {
		return regs, 0, false
	}
	flags = n.ctx.read(b, &regs)
	return regs, flags, true
}
