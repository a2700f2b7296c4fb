package bin

import (
	"sync"
	"testing"
)

// A function runs once, but one that panics has not been run.
func TestOnce(t *testing.T) {
	var o Once
	n := 0
	for range 3 {
		func() {
			defer func() { recover() }()
			o.Do(func() {
				if n++; n < 2 {
					panic("cut")
				}
			})
		}()
	}
	if n != 2 {
		t.Errorf("ran %d times", n)
	}
	calls := 0
	value := OnceValue(func() int { calls++; return 5 })
	for range 2 {
		if v := value(); v != 5 || calls != 1 {
			t.Errorf("the value %d was made %d times", v, calls)
		}
	}
	var all sync.WaitGroup
	var p Once
	ran := 0
	for range 8 {
		all.Go(func() { p.Do(func() { ran++ }) })
	}
	if all.Wait(); ran != 1 {
		t.Errorf("ran %d times on 8 goroutines", ran)
	}
}
