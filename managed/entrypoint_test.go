package managed

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/loader"
	"github.com/seamwalk/seam/managed/clr"
	"github.com/seamwalk/seam/managed/code"
)

// An entryTally counts places in ReadyToRun code whose method is known, and what
// the fallback says of them.
type entryTally struct {
	places, refused, wrong int
	instances              int // found in the table of instance entry points
}

// TestEntryPoints holds the fallback for a missing map of entry points against
// that map: each place in ReadyToRun code on the stacks of the recorded dumps of
// Linux is looked up once with the runtime's map, and once by the image's own
// tables of entry points alone. What those say is right, or they say nothing.
func TestEntryPoints(t *testing.T) {
	images := corpus.Images(t)
	totals := map[string]*entryTally{}
	for _, path := range corpus.Dumps(t, `^(net(8|9|10).*-(x64|arm64)|azmcp-linux.*|deep-dotnet-x64)/`) {
		if strings.Contains(path, "-win-") {
			continue
		}
		rel, _ := filepath.Rel(corpus.Path(t), path)
		p, err := loader.Open(path, &loader.Options{Find: loader.DirFinder(images)})
		if err != nil {
			t.Fatal(err)
		}
		sum := entryPoints(t, rel, Open(p, nil))
		if sum.places > 0 {
			t.Logf("%s: %+v", rel, sum)
		}
		total := totals[p.Arch.Name]
		if total == nil {
			total = &entryTally{}
			totals[p.Arch.Name] = total
		}
		total.places += sum.places
		total.refused += sum.refused
		total.wrong += sum.wrong
		total.instances += sum.instances
		p.Close()
	}
	for cpu, sum := range totals {
		if t.Logf("all dumps, %s: %+v", cpu, *sum); sum.instances == 0 || sum.places < 100 || sum.refused > sum.places/2 {
			t.Errorf("%s: too few are compared", cpu)
		}
	}
}

func entryPoints(t *testing.T, dump string, s *Session) (sum entryTally) {
	seen := map[arch.Addr]bool{}
	var frames []Frame
	w := s.NewWalker()
	for i := range s.Process.Threads {
		frames, _ = w.Walk(frames[:0], &s.Process.Threads[i])
		for i := range frames {
			f := &frames[i]
			if f.Code.Kind != code.ReadyToRun || f.Code.Method == 0 || seen[f.PC.Lookup()] {
				continue
			}
			seen[f.PC.Lookup()] = true
			rt := f.Runtime.(*clr.Runtime)
			known, _ := rt.CodeAt(f.PC.Lookup())
			if known.Method == 0 {
				continue
			}
			// What CodeAt knows without the map.
			c := clr.Code{Code: code.Code{Kind: f.Code.Kind, Body: f.Code.Body}, Base: known.Base, Unwind: known.Unwind, Header: known.Header}
			rt.CompleteCode(&c)
			sum.places++
			if c.Row == 0 {
				sum.refused++
				continue
			}
			if c.Instance != 0 {
				sum.instances++
			}
			want, _ := rt.Describe(&f.Code)
			got, _ := rt.MethodOf(&c)
			if c.Start != f.Code.Start || c.Index != known.Index || c.Funclet != f.Code.Funclet ||
				c.Method != 0 && c.Method != f.Code.Method || got.Token != want.Token || !agree(spell(&got), spell(&want)) {
				sum.wrong++
				t.Errorf("%s: %v is %s, %#x; by the tables of its image %s, %#x", dump, f.PC.Addr, spell(&want), want.Token, spell(&got), got.Token)
			}
		}
	}
	return sum
}

// spell tells a method with all that is known of it.
func spell(m *code.Method) string {
	return m.Name + "<" + strings.Join(m.TypeArgs, ",") + "><" + strings.Join(m.MethodArgs, ",") + ">(" + strings.Join(m.Params, ",") + ")"
}

// agree reports whether a and b are the same, where ? stands for what one of
// them does not know.
func agree(a, b string) bool { return partOf(a, b) || partOf(b, a) }

// partOf reports whether got is want, or less of it.
func partOf(got, want string) bool {
	parts := strings.Split(got, "?")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(want)
}
