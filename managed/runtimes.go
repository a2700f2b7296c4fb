package managed

import (
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
	"github.com/seamwalk/seam/managed/nativeaot"
)

// runtimes is the table of the runtimes that Seam reads: a line each. If two know
// the same code, the upper one is asked for it. Options.Runtimes adds to it.
var runtimes = []code.Finder{
	clr.Find,
	nativeaot.Find,
}
