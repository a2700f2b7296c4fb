package managed

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seamwalk/seam/internal/coreedit"
	"github.com/seamwalk/seam/internal/corpus"
)

// A build of .NET 10 that is in no table, in a dump that comes alone: the same
// stacks, code and methods as with its own layouts.
func TestUnknownBuild(t *testing.T) {
	for _, name := range []string{"net10-hello-x64/normal.zst", "net10-singlefile-x64/normal.zst", "net10-crash-unhandled-x64/mini.zst"} {
		path := filepath.Join(corpus.Path(t), name)
		c, err := coreedit.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var want [][]Frame
		openPath(t, path, func(s *Session) {
			w := s.NewWalker()
			for i := range s.Process.Threads {
				fs, _ := w.Walk(nil, &s.Process.Threads[i])
				want = append(want, fs)
			}
			// The build-id, as it stands in the image's note.
			id, err := hex.DecodeString(coreclr(s).Image.ID.BuildID)
			if err != nil {
				t.Fatal(err)
			}
			if c.Replace(id, bytes.Repeat([]byte{0xab}, len(id))) == 0 {
				t.Fatalf("%s: the dump does not hold the build-id", name)
			}
		})
		openEdit(t, c, func(s *Session) {
			if len(s.Runtimes) != 1 || coreclr(s).How != "table" || coreclr(s).Version != "10.0" {
				t.Fatalf("%s: runtimes %+v, warnings %v", name, s.Runtimes, s.Warnings)
			}
			w := s.NewWalker()
			for i := range s.Process.Threads {
				got, _ := w.Walk(nil, &s.Process.Threads[i])
				for k := range got {
					got[k].Runtime = nil
				}
				for k := range want[i] {
					want[i][k].Runtime = nil
				}
				if !slices.Equal(got, want[i]) {
					t.Errorf("%s: thread %d has another stack", name, s.Process.Threads[i].ID)
				}
			}
		})
	}
}
