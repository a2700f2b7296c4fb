// Scrub blanks in a trimmed core what nobody should publish and no stack needs:
// a trim keeps whole pages, and the page of the outermost frame has the
// environment in it, as have pages of the heap that hold copies.
//
//	go run ./testdata/scrub trimmed.zst core.zst
//
// Blanked are variables of the environment, in UTF-8 and UTF-16, and the paths
// that the vDSO has of the machine that its kernel was built on. It prints the
// SHA-256 of the core it wrote, unpacked.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"

	"github.com/klauspost/compress/zstd"
)

// blank lists what is overwritten with zeros. A name has four letters at least,
// so that no code is taken for one; it may have lost its beginning.
var blank = []*regexp.Regexp{
	regexp.MustCompile(`[A-Z_][A-Z0-9_]{3,}=[ -~]+`),
	regexp.MustCompile(`(?:[A-Z0-9_]\x00){4,}=\x00(?:[ -~]\x00)+`),
	regexp.MustCompile(`/nix/store/[ -~]+`),
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: scrub IN.zst OUT.zst")
		os.Exit(2)
	}
	if err := scrub(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func scrub(in, out string) error {
	packed, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	r, err := zstd.NewReader(nil)
	if err != nil {
		return err
	}
	core, err := r.DecodeAll(packed, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	n := 0
	for _, re := range blank {
		for _, at := range re.FindAllIndex(core, -1) {
			clear(core[at[0]:at[1]])
			n++
		}
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	packed = w.EncodeAll(core, nil)
	fmt.Printf("%d strings blanked, %d bytes\n%x  core\n", n, len(packed), sha256.Sum256(core))
	return os.WriteFile(out, packed, 0o644)
}
