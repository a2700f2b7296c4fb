package clr

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/seamwalk/seam/loader"
)

// The table of known builds serves dumps that hold no contract descriptor and
// come without the runtime's file: what createdump writes, alone. A build is known
// by what identifies every byte of its code and data (see buildKey), so that its
// layouts are what its own descriptor says. layouts/builds.json has a row a build;
// the descriptors' texts lie beside it, builds with equal ones sharing one.
// TestKnownBuilds holds both against the files, and writes them with -update.
//
//go:embed layouts
var layouts embed.FS

// A build is a row of the table.
type build struct {
	ID      string `json:"id"`               // its buildKey
	Image   string `json:"image"`            // name of the file, for people
	Version string `json:"version"`          // of the runtime
	Commit  string `json:"commit,omitempty"` // of its sources, in hex; "" if the file does not say
	// Layout is the name of the descriptor's text under layouts/; "" of a build whose
	// descriptor says nothing of code, or that has none: the row then says which
	// build it is, and it is read by its release.
	Layout   string   `json:"layout,omitempty"`
	Pointers []string `json:"pointers,omitempty"` // pointer data as link addresses, "0x..."; slot 0 is null
}

// buildKey returns what the table knows a file's build by, "" where the dump does
// not tell: the build-id of an ELF file in hex, and of a PE file its timestamp and
// SizeOfImage as symbol servers spell them, "6A89B72447a000".
func buildKey(id *loader.ImageID) string {
	if id.BuildID == "" && id.Timestamp != 0 && id.Size != 0 {
		return fmt.Sprintf("%08X%x", id.Timestamp, id.Size)
	}
	return id.BuildID
}

// buildName says what a build is known by, for a message.
func buildName(id *loader.ImageID) string {
	if key := buildKey(id); key != id.BuildID {
		return "timestamp and size " + key
	}
	return "build-id " + id.BuildID
}

var knownBuilds = sync.OnceValues(func() (map[string]*build, error) {
	text, err := layouts.ReadFile("layouts/builds.json")
	if err != nil {
		return nil, err
	}
	var rows []*build
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, err
	}
	m := make(map[string]*build, len(rows))
	for _, b := range rows {
		m[b.ID] = b
	}
	return m, nil
})

// knownBuild returns the row of a build, nil if there is none.
func knownBuild(id *loader.ImageID) (*build, error) {
	m, err := knownBuilds()
	if err != nil {
		return nil, fmt.Errorf("the table of known builds: %w", err)
	}
	return m[buildKey(id)], nil
}

// contract returns the build's contract as its own descriptor would give it in
// a process where its image was moved by bias.
func (b *build) contract(bias uint64) (*contract, error) {
	text, err := layouts.ReadFile("layouts/" + b.Layout)
	if err != nil {
		return nil, fmt.Errorf("the table of known builds: %w", err)
	}
	ptrs := make([]uint64, len(b.Pointers))
	for i, s := range b.Pointers {
		v, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			return nil, fmt.Errorf("the table of known builds: %w", err)
		}
		if v != 0 {
			ptrs[i] = v + bias
		}
	}
	return parseContract(text, ptrs)
}
