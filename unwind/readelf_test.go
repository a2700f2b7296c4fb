package unwind

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
)

// Every row of whole libraries is compared with what readelf makes of it.
func TestRowsAsReadelf(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("no readelf")
	}
	for _, path := range append([]string{libc(t)}, extraImages()...) {
		t.Run(filepath.Base(path), func(t *testing.T) { compareRows(t, path) })
	}
}

// The same for libraries of recorded cases, of both CPUs, one of them with
// .debug_frame.
func TestRowsOfCorpusAsReadelf(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("no readelf")
	}
	dir := filepath.Join(corpus.Path(t), "images", "elf")
	for _, name := range []string{"libcoreclr.so", "libc.so.6", "ld-linux-aarch64.so.1", "libstdc++.so.6", "c-O2-nocfi", "aotapp"} {
		found, _ := filepath.Glob(filepath.Join(dir, "*", name+".zst"))
		for _, p := range found {
			t.Run(filepath.Base(filepath.Dir(p))[:8]+"/"+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), name)
				if err := os.WriteFile(path, unzstd(t, p), 0o600); err != nil {
					t.Fatal(err)
				}
				compareRows(t, path)
			})
		}
	}
}

func compareRows(t *testing.T, path string) {
	m := openELF(t, path)
	cmd := exec.Command("readelf", "--debug-dump=frames-interp", "-W", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()

	var (
		in    finder
		c     *cfi
		cols  []string
		isFDE bool
		skip  bool
		span  arch.Span
		rows  int
		cells int
		bad   int
		sc    scratch
	)
	srcs := m.sources()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "Contents of the "):
			in, c = nil, nil
			for _, s := range srcs {
				switch s := s.(type) {
				case *ehFrame:
					if strings.Contains(line, ".eh_frame") {
						in, c = s, &s.cfi
					}
				case *debugFrame:
					if strings.Contains(line, ".debug_frame") {
						in, c = s, &s.cfi
					}
				}
			}
		case len(f) > 4 && f[3] == "FDE":
			isFDE = true
			pc := strings.Split(strings.TrimPrefix(f[len(f)-1], "pc="), "..")
			lo, _ := strconv.ParseUint(pc[0], 16, 64)
			hi, _ := strconv.ParseUint(pc[1], 16, 64)
			span = arch.Span{Lo: arch.Addr(lo), Hi: arch.Addr(hi)}
			skip = hi <= lo || in == nil
		case len(f) > 3 && f[3] == "CIE":
			isFDE = false
		case len(f) > 1 && f[0] == "LOC":
			cols = f[2:]
		case isFDE && !skip && len(f) >= 2 && len(f[0]) == 16:
			lo, err := strconv.ParseUint(f[0], 16, 64)
			if err != nil || !span.Has(arch.Addr(lo)) {
				continue // a row at the very end of a function covers nothing
			}
			var d fde
			pc := arch.PC{Addr: arch.Addr(lo), Exact: true}
			ok, flt := c.row(in, pc, &d, &sc)
			if !ok || flt.reason != 0 {
				if bad++; bad < 20 {
					t.Errorf("%#x: no row: %v %+v", lo, ok, flt)
				}
				continue
			}
			rows++
			cells += len(cols) + 1
			if got := interp(m.arch, &d, &sc.row, cols); !sameRow(got, f[1:], m.arch) {
				if bad++; bad < 20 {
					t.Errorf("%#x: got %v, readelf has %v (%v)", lo, got, f[1:], cols)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("no row compared")
	}
	t.Logf("%d rows, %d cells, %d differ", rows, cells, bad)
}

// interp writes the row as readelf does, with the columns cols.
func interp(a *arch.Arch, d *fde, w *row, cols []string) []string {
	var out []string
	switch w.cfa.how {
	case atOffset:
		out = append(out, fmt.Sprintf("%s%+d", a.RegName(arch.Reg(w.base)), w.cfa.off))
	default:
		out = append(out, "exp")
	}
	for _, col := range cols {
		reg := slices.Index(readelfNames(a), col)
		if col == "ra" {
			reg = int(d.cie.ra)
		}
		if reg < 0 {
			out = append(out, "?") // a vector register
			continue
		}
		x := w.regs[reg]
		switch x.how {
		case unspecified, undefined:
			out = append(out, "u")
		case sameValue:
			out = append(out, "s")
		case atOffset:
			out = append(out, fmt.Sprintf("c%+d", x.off))
		case valOffset:
			out = append(out, fmt.Sprintf("v%+d", x.off))
		case inRegister:
			out = append(out, fmt.Sprintf("r%d", x.off))
		case atExpression:
			out = append(out, "exp")
		case valExpression:
			out = append(out, "vexp")
		}
	}
	return out
}

// readelf's names of registers.
func readelfNames(a *arch.Arch) []string {
	names := slices.Clone(a.Names)
	for i, n := range names {
		switch n {
		case "fp":
			names[i] = "x29"
		case "lr":
			names[i] = "x30"
		}
	}
	return names
}

func sameRow(got, want []string, a *arch.Arch) bool {
	// A register rule is "r12 (r12)" in readelf: two fields.
	var w []string
	for _, s := range want {
		if !strings.HasPrefix(s, "(") {
			w = append(w, s)
		}
	}
	if len(got) != len(w) {
		return false
	}
	for i := range got {
		g := got[i]
		if i == 0 {
			for j, n := range a.Names {
				if strings.HasPrefix(g, n+"+") || strings.HasPrefix(g, n+"-") {
					g = readelfNames(a)[j] + g[len(n):]
					break
				}
			}
		}
		if g != "?" && g != w[i] {
			return false
		}
	}
	return true
}
