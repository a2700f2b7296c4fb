package profiler

import "testing"

// FuzzSeed gives DoStackSnapshot seeds of any content and length over a real
// process. It must come back, and make no more callbacks than the stack has
// room for.
func FuzzSeed(f *testing.F) {
	s := openFixture(f, "net10-hello")
	n := snapshotter(f, s)
	var tids []uint32
	for _, tid := range n.tids {
		tids = append(tids, tid)
		for i := range s.Process.Threads {
			if d := &s.Process.Threads[i]; d.ID == tid {
				if found := n.FindSeed(d); found.Seed != nil {
					f.Add(uint8(0), uint32(1), found.Seed.Context)
				}
			}
		}
	}
	for _, t := range n.byID {
		t.Cooperative = true // so that seeds are looked at
	}
	f.Add(uint8(1), uint32(0), []byte(nil))
	f.Add(uint8(2), uint32(8), make([]byte, 1232))
	f.Fuzz(func(t *testing.T, mode uint8, flags uint32, ctx []byte) {
		for _, tid := range tids {
			calls := 0
			n.Do(Request{TID: tid, Mode: Mode(mode % 3), Flags: flags, Context: ctx, FilterContext: ctx}, func(c Call) HRESULT {
				if b, err := c.Context(); err != nil || flags&1 != 0 && len(b) != 3232 {
					t.Fatalf("%d bytes, %v", len(b), err)
				}
				calls++
				return S_OK
			})
			if calls > maxSnapshotSteps {
				t.Fatalf("%d callbacks", calls)
			}
		}
	})
}
