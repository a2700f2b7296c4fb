package floors

import (
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// words returns what the identifiers and strings of a Go file are that named
// says yes to, and where.
func words(path string, text []byte, named func(tok token.Token, lit string) bool) (found []string) {
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile(path, set.Base(), len(text)), text, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return found
		}
		if named(tok, lit) {
			found = append(found, fmt.Sprintf("%v: %s", set.Position(pos), lit))
		}
	}
}

// outside calls t.Error for every word that named says yes to in a file that is
// neither allowed by its own path nor by that of its folder.
func outside(t *testing.T, what string, allowed map[string]string, named func(tok token.Token, lit string) bool) {
	used := map[string]bool{}
	sources(t, func(path, dir string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := words(path, text, named)
		for _, at := range []string{dir, rel(path)} {
			if allowed[at] != "" {
				used[at] = used[at] || len(found) > 0
				return
			}
		}
		for _, f := range found {
			t.Errorf("%s %s", f, what)
		}
	})
	for at := range allowed {
		if !used[at] {
			t.Errorf("%s is allowed what it does not need: take it out of the list", at)
		}
	}
}

var cpu = regexp.MustCompile(`(?i)amd64|x86_?64|arm64|aarch64`)

func namesCPU(tok token.Token, lit string) bool {
	return (tok == token.IDENT || tok == token.STRING) && cpu.MatchString(lit)
}

// What differs by CPU is data in arch: nobody else asks which one it is.
func TestNoCPUOutsideArch(t *testing.T) {
	outside(t, "names a CPU", map[string]string{
		"arch":             "describes them",
		"internal/memtest": "makes cores of one, for tests",
	}, namesCPU)
}

var (
	// systems are operating systems as GOOS spells them.
	systems = []string{"aix", "android", "darwin", "dragonfly", "freebsd", "illumos", "ios", "linux", "netbsd", "openbsd", "solaris", "windows"}
	system  = regexp.MustCompile(`(?i)darwin|freebsd|linux|macos|netbsd|openbsd|solaris|windows|win32|win64|GOOS`)
)

// namesOS knows identifiers that name an operating system, and strings that are
// such a name and nothing else. A text for people may name one.
func namesOS(tok token.Token, lit string) bool {
	if tok == token.STRING {
		s, _ := strconv.Unquote(lit)
		return slices.Contains(systems, s)
	}
	return tok == token.IDENT && system.MatchString(lit)
}

// What differs by operating system is a row of arch.ABI, or of a table about
// CoreCLR: nobody else asks which one it is. The reader of a dump format knows
// whose dumps have that format.
func TestNoOSOutsideTables(t *testing.T) {
	outside(t, "names an operating system", map[string]string{
		"arch":                       "describes what each adds to a CPU",
		"loader/core_open.go":        "ELF cores are Linux's; it refuses those of others by name",
		"cmd/seam/version.go":        "says for which system this program was built",
		"managed/profiler/system.go": "the runtime's walk differs by it",
	}, namesOS)
}

// TestNamesAreSeen checks that the two gates can fail.
func TestNamesAreSeen(t *testing.T) {
	const text = `package p
// On Windows and on amd64 a comment may say so.
var isWindows = p.OS == "windows" // two
var text = "only on Windows can a thread be stopped"
var a, b = arch.ARM64, runtime.GOOS // one CPU, one system
var c = "net10-linux-x86_64.json"   // a CPU
`
	if got := words("p.go", []byte(text), namesOS); len(got) != 3 {
		t.Errorf("operating systems: %q", got)
	}
	if got := words("p.go", []byte(text), namesCPU); len(got) != 2 {
		t.Errorf("CPUs: %q", got)
	}
}
