package profiler

import (
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed"
)

func threadOf(t testing.TB, s *managed.Session, tid uint32) *loader.Thread {
	t.Helper()
	for i := range s.Process.Threads {
		if d := &s.Process.Threads[i]; d.ID == tid {
			return d
		}
	}
	t.Fatalf("no thread %d", tid)
	return nil
}

// TestFindSeed finds the seeds that the recorder found in the live process.
func TestFindSeed(t *testing.T) {
	for _, c := range []struct {
		name  string
		seeds int // that are equal, of those for which the recorder had unwind information
	}{{"net10-callbacks-x64", 349}, {"net10-seeds-x64", 23}, {"net10-elt-fast-x64", 69}, {"net10-elt-slow-x64", 69}, {"net10-gc-x64", 1}} {
		n := snapshotter(t, openCase(t, c.name, "dump.zst"))
		r := readRecord(t, c.name)
		equal := 0
		for tid, at := range r.still {
			w := r.byName[at+"/seeded"]
			if w == nil || w.seed == nil {
				continue
			}
			var want arch.Regs
			n.ctx.read(w.seed, &want)
			found := n.FindSeed(threadOf(t, n.s, tid))
			if found.Seed == nil {
				t.Errorf("%s %s: no seed: %v", c.name, at, found.Stop)
				continue
			}
			if found.Needed != (w.Mode == "cooperative") {
				t.Errorf("%s %s: needed %v in %s mode", c.name, at, found.Needed, w.Mode)
			}
			same := true
			for _, reg := range []arch.Reg{n.a.PC, n.a.SP, n.a.FP} {
				x, _ := found.Seed.Regs.Get(reg)
				y, _ := want.Get(reg)
				same = same && x == y
			}
			if same {
				equal++
			} else if v, _ := n.mem.Word(n.spOf(&want) - 8); arch.Addr(v) == n.pcOf(&want) {
				t.Errorf("%s %s: pc %v sp %v, the recorder found %v %v", c.name, at, found.Seed.PC, found.Seed.SP, n.pcOf(&want), n.spOf(&want))
			}
		}
		if equal < c.seeds {
			t.Errorf("%s: %d seeds equal, want %d", c.name, equal, c.seeds)
		}
	}
}

// TestContractFunctionFromIP are rows 63 and 64, with the recorder's addresses
// and the runtime's answers.
func TestContractFunctionFromIP(t *testing.T) {
	for _, name := range []string{"net10-seeds-x64", "net9-seeds-x64", "net8-seeds-x64"} {
		t.Run(name, func(t *testing.T) { functionFromIP(t, name) })
	}
}

func functionFromIP(t *testing.T, name string) {
	n := snapshotter(t, openCase(t, name, "dump.zst"))
	asked := 0
	for _, d := range readRecord(t, name).ips {
		if len(d.N1) < 2 || strings.HasPrefix(d.What, "initialize") {
			continue // before the runtime has started
		}
		ip := arch.Addr(hexNumber(d.IP))
		for _, c := range []struct {
			name string
			ask  func(arch.Addr) (FunctionID, HRESULT)
			want []string
		}{{"GetFunctionFromIP", n.GetFunctionFromIP, d.N1}, {"GetFunctionFromIP2", n.GetFunctionFromIP, d.N2}, {"GetFunctionFromIP3", n.GetFunctionFromIP3, d.N3}} {
			fn, hr := c.ask(ip)
			if n.why.Missing || d.What == "body-end+32" {
				n.why = Why{}
				continue // not in the dump; or the process has compiled something there since
			}
			asked++
			if want := HRESULT(hexNumber(c.want[0])); hr != want || hr == S_OK && uint64(fn) != hexNumber(c.want[1]) {
				t.Errorf("%s of %s (%v): %v %#x, the runtime said %v", c.name, d.What, ip, hr, uint64(fn), c.want)
			}
		}
	}
	if asked < 300 {
		t.Errorf("%d questions", asked)
	}
}

// TestCheckSeed judges seeds that are wrong in the ways that occur.
func TestCheckSeed(t *testing.T) {
	n := snapshotter(t, openCase(t, "net10-seeds-x64", "dump.zst"))
	r := readRecord(t, "net10-seeds-x64")
	tid := n.req0(t, "net10-seeds-x64", "seeds-coop-deep")
	d := threadOf(t, n.s, tid)
	found := n.FindSeed(d)
	if found.Seed == nil {
		t.Fatal("no seed")
	}
	change := func(reg arch.Reg, by int64) []byte {
		regs := found.Seed.Regs
		v, _ := regs.Get(reg)
		regs.Set(reg, v+uint64(by))
		b := append([]byte(nil), found.Seed.Context...)
		n.ctx.write(b, &regs, 0)
		return b
	}
	other := n.FindSeed(threadOf(t, n.s, n.req0(t, "net10-seeds-x64", "seeds-coop-catch"))).Seed.Context
	pc, _ := d.Regs.Get(n.a.PC)
	rbx := arch.Reg(3)
	native := change(n.a.PC, int64(pc)-int64(found.Seed.PC))
	for _, c := range []struct {
		name string
		ctx  []byte
		hr   HRESULT
		same bool
		text string
	}{
		{"right", found.Seed.Context, S_OK, true, "right seed"},
		{"one frame deeper", r.byName["seeds-coop-deep/seeded-deeper"].seed, S_OK, false, "1 managed frame deeper"},
		{"sp 8 too high", change(n.a.SP, 8), S_OK, false, "off by +8"},
		{"sp 8 too low", change(n.a.SP, -8), S_OK, false, "off by -8"},
		{"native", native, CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX, false, "native code"},
		{"another thread's", other, E_FAIL, false, "another thread's seed"},
		{"a register", change(rbx, 1), S_OK, false, "these registers differ"},
		{"stale", change(n.a.SP, -0x8000), E_UNEXPECTED, false, "stale"},
	} {
		v, err := n.CheckSeed(d, &found, Self, c.ctx)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.name != "stale" && v.HR != c.hr || v.Same != c.same || !strings.Contains(v.Text, c.text) {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	if _, err := n.CheckSeed(d, &found, Self, nil); err == nil {
		t.Error("an empty CONTEXT is none")
	}
	if len(found.Seed.Context) != 1232 {
		t.Errorf("a seed of %d bytes", len(found.Seed.Context))
	}
}
