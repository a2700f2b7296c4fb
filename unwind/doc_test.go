package unwind

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/golden"
)

const stopsHead = `# Why a stack ends

Written by a test of package unwind from its table of reasons (` + "`go test ./unwind -run StopsPage -update`" + `).

Every walk ends for one of these reasons. It is ` + "`stop.reason`" + ` in JSON; a gap's ` + "`why`" + ` begins with it, for a gap is a stop that
the walk got past. A stack is complete if its reason says that there is no caller; with any other, frames may be missing behind the last.
Where a byte was missing, broken or unknown, ` + "`at`" + ` is its address, and the text names the image that it lies in.

| reason | complete | meaning |
|---|---|---|
`

// TestStopsPage holds docs/stops.md against the table.
func TestStopsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(stopsHead)
	for _, r := range Reasons() {
		complete := ""
		if r.Complete() {
			complete = "yes"
		}
		if r.String() == "?" || r.String() == "" || r.Doc() == "?" || r.Doc() == "" {
			t.Errorf("reason %d has no name or no meaning", r)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r, complete, r.Doc())
	}
	golden.Compare(t, "../../docs/stops.md", []byte(b.String()))
}
