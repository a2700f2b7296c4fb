package loader

import (
	"testing"
	"time"

	"github.com/seamwalk/seam/arch"
)

// TestKeptRuns looks bytes up among as many runs as a table makes that was read
// entry by entry: what lies in one is there, what is between two or goes on beyond
// one is not, and many look-ups take no time.
func TestKeptRuns(t *testing.T) {
	var k keptImage
	const runs = 50_000
	for i := range arch.Addr(runs) {
		k.runs = append(k.runs, linkRun{0x1000 + 16*i, []byte{byte(i), 1, 2, 3}})
	}
	began := time.Now()
	for i := range arch.Addr(runs) {
		at := 0x1000 + 16*i
		if b := k.linkTime(at, 4); len(b) != 4 || b[0] != byte(i) {
			t.Fatalf("%v: %v", at, b)
		}
		if b := k.linkTime(at+1, 3); len(b) != 3 || b[0] != 1 {
			t.Fatalf("%v: %v", at+1, b)
		}
		if k.linkTime(at+1, 4) != nil || k.linkTime(at+4, 1) != nil || k.linkTime(at-1, 1) != nil {
			t.Fatalf("%v: bytes that were not kept", at)
		}
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("%v for %d look-ups", d, 5*runs)
	}
	if new(keptImage).linkTime(0x1000, 1) != nil || (*keptImage)(nil).linkTime(0x1000, 1) != nil {
		t.Error("bytes of nothing")
	}
}
