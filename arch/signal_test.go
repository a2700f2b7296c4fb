package arch_test

import (
	"encoding/binary"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/memtest"
)

func TestSignals(t *testing.T) {
	abi := arch.AMD64.On(arch.Linux)
	segv := abi.SignalOf(11)
	if segv == nil || segv.Name != "SIGSEGV" || !segv.Accesses || abi.SignalOf(77) != nil {
		t.Fatalf("11 is %+v, 77 is %+v", segv, abi.SignalOf(77))
	}
	for si, want := range map[int32]string{1: "SEGV_MAPERR", 2: "SEGV_ACCERR", 128: "SI_KERNEL", -6: "SI_TKILL", 0: "", 99: ""} {
		if got := abi.SignalCode(segv, si); got != want {
			t.Errorf("code %d is %q, want %q", si, got, want)
		}
	}
	seen := map[uint32]bool{}
	for _, s := range abi.Signals {
		if s.Name == "" || s.Number == 0 || seen[s.Number] {
			t.Errorf("%+v", s)
		}
		seen[s.Number] = true
	}
	if got := arch.AMD64.On(arch.Windows).SignalOf(11); got != nil {
		t.Errorf("Windows has %+v", got)
	}
}

// TestAccess reads made ucontext_ts: what the program did is told where the kernel
// has noted it, and nowhere else.
func TestAccess(t *testing.T) {
	const at = arch.Addr(0x1000)
	for _, tt := range []struct {
		cpu   *arch.Arch
		words map[int]uint64 // by offset in the ucontext_t
		want  arch.Access
	}{
		{arch.AMD64, map[int]uint64{192: 4, 200: 14}, arch.AccessRead},
		{arch.AMD64, map[int]uint64{192: 6, 200: 14}, arch.AccessWrite},
		{arch.AMD64, map[int]uint64{192: 0x14, 200: 14}, arch.AccessExecute},
		{arch.AMD64, map[int]uint64{192: 6, 200: 13}, arch.AccessUnknown}, // a general protection fault
		{arch.ARM64, map[int]uint64{464: 528<<32 | 0x46508001, 992: 16<<32 | 0x45535201, 1000: 0x92000045}, arch.AccessWrite},
		{arch.ARM64, map[int]uint64{464: 528<<32 | 0x46508001, 992: 16<<32 | 0x45535201, 1000: 0x92000005}, arch.AccessRead},
		{arch.ARM64, map[int]uint64{464: 16<<32 | 0x45535201, 472: 0x82000005}, arch.AccessExecute},
		{arch.ARM64, map[int]uint64{464: 16<<32 | 0x45535201, 472: 0x56000000}, arch.AccessUnknown}, // a system call
		{arch.ARM64, map[int]uint64{464: 8<<32 | 0x46508001}, arch.AccessUnknown},                   // a record too short to be one
		{arch.ARM64, nil, arch.AccessUnknown},
	} {
		data := make([]byte, 8192)
		for off, v := range tt.words {
			binary.LittleEndian.PutUint64(data[off:], v)
		}
		access := tt.cpu.On(arch.Linux).Access
		if got := access(memtest.Piece[arch.Addr]{At: at, Data: data}, at); got != tt.want {
			t.Errorf("%s, %x: %v, want %v", tt.cpu.Name, tt.words, got, tt.want)
		}
		if got := access(memtest.Piece[arch.Addr]{At: at}, at); got != arch.AccessUnknown {
			t.Errorf("%s without memory: %v", tt.cpu.Name, got)
		}
	}
}
