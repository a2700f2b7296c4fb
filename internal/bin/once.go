package bin

import (
	"sync"
	"sync/atomic"
)

// A Once runs a function once, as sync.Once does, but one that panics has not
// been run: the next call runs it again. What reads a mapped file can be left by
// a panic where the file has lost bytes (see loader.Process.Guard), and is then
// done again without them.
type Once struct {
	done atomic.Bool
	mu   sync.Mutex
}

// Do calls f unless a call of Do has returned before.
func (o *Once) Do(f func()) {
	if o.done.Load() {
		return
	}
	o.slow(f)
}

func (o *Once) slow(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done.Load() {
		f()
		o.done.Store(true)
	}
}

// OnceValue returns a function that returns what f returns, and calls f once, as
// Once does.
func OnceValue[T any](f func() T) func() T {
	var o Once
	var v T
	return func() T {
		o.Do(func() { v = f() })
		return v
	}
}
