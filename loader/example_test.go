package loader_test

import (
	"fmt"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

// A dump is opened, its runtime's image and the top of its first thread's
// stack are looked at. No file but the dump is at hand, so the runtime's code
// is missing, and the loader says so.
func ExampleOpen() {
	p, err := loader.Open("testdata/hello.core.zst", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	fmt.Println(p.Format, p.ABI.OS, p.Arch.Name, len(p.Threads), "threads,", len(p.Images), "images")

	m := p.ImageAt(p.RuntimeHint)
	fmt.Println(m.ID.Name, m.ID.BuildID, m.Bytes())

	sp, _ := p.Threads[0].Regs.Get(p.Arch.SP)
	_, ok := p.Memory.Word(arch.Addr(sp))
	fmt.Println("word at sp:", ok)

	why, in := p.Memory.Absent(m.Span().Lo + 0x300000)
	fmt.Println("its code:", why, "for", in.ID.Name)
	// Output:
	// elf-core linux amd64 18 threads, 44 images
	// libcoreclr.so 79945f51fb2612f13b7667a10a8fd29122664791 none
	// word at sp: true
	// its code: image file not found for libcoreclr.so
}
