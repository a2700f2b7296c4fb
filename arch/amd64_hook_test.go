package arch

import "testing"

// TestAMD64EnterHook: only what sets up both registers of an enter hook before the
// first call tells an id. The first two are methods of net8-elt-fast-x64.
func TestAMD64EnterHook(t *testing.T) {
	const push = "55 41 57 41 56 48 83 ec 10 48 8d 6c 24 20 "
	const id = "49 be 20 e9 8a 73 e1 7f 00 00 "
	for _, c := range []struct {
		name, code string
		want       uint64
	}{
		{"a hook", push + id + "4c 8d 7d 10 ff 15 86 dd 82 7e", 0x7fe1738ae920},
		{"an argument kept first", push + "48 89 7d e8 " + id + "4c 8d 7d 10 ff 15 12 dd 82 7e", 0x7fe1738ae920},
		{"locals cleared first", push + "c5 d8 57 e4 c5 f8 29 65 c0 " + id + "4c 8d 7d 10 ff 15 12 dd 82 7e", 0x7fe1738ae920},
		{"of a frame without a frame pointer", "41 57 41 56 50 " + id + "4c 8d 7c 24 20 ff 15 12 dd 82 7e", 0x7fe1738ae920},
		{"no id", push + "4c 8d 7d 10 ff 15 86 dd 82 7e", 0},
		{"no stack pointer", push + id + "ff 15 86 dd 82 7e", 0},
		{"another value by then", push + id + "49 89 fe 4c 8d 7d 10 ff 15 86 dd 82 7e", 0},
		{"another place by then", push + id + "4c 8d 7d 10 49 89 ff ff 15 86 dd 82 7e", 0},
		{"an element's address", push + id + "4c 8d 7c c5 10 ff 15 86 dd 82 7e", 0},
		{"registers that are not saved", "55 " + id + "4c 8d 7d 10 ff 15 86 dd 82 7e", 0},
		{"behind a call", push + "ff 15 86 dd 82 7e " + id + "4c 8d 7d 10 ff 15 86 dd 82 7e", 0},
		{"behind a jump", push + "eb 00 " + id + "4c 8d 7d 10 ff 15 86 dd 82 7e", 0},
		{"cut short", push + id + "4c 8d 7d", 0},
	} {
		m := flatAt(0x10000, bytesOf(t, c.code))
		if got, ok := AMD64.EnterHook(m, m.At); ok != (c.want != 0) || ok && got != c.want {
			t.Errorf("%s: %#x, %v", c.name, got, ok)
		}
	}
}
