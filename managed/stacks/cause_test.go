package stacks_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/managed/stacks"
)

// printedMethod matches the methods of a stack trace that a dying process has printed.
var printedMethod = regexp.MustCompile(`(?m)^ +at (?:\S+?)([\w<>|]+)\(`)

// TestRecordedCrashes: what ended a process is what its last lines say, and its
// stack, or the stack trace of the exception, has the methods that they name.
func TestRecordedCrashes(t *testing.T) {
	for _, tt := range []struct {
		name, dump, said, text string
		signal                 stacks.Signal
	}{
		{"net10-crash-unhandled-x64", "mini.zst", "stderr.txt", "unhandled System.ApplicationException: unhandled scenario", stacks.Signal{Name: "SIGABRT"}},
		{"net10-crash-unhandled-heap-x64", "heap.zst", "stderr.txt", "unhandled System.ApplicationException: unhandled scenario", stacks.Signal{Name: "SIGABRT"}},
		{"net10-crash-failfast-x64", "mini.zst", "stderr.txt", "FailFast: failfast scenario", stacks.Signal{Name: "SIGABRT"}},
		{"net10-crash-overflow-x64", "mini.zst", "", "stack overflow", stacks.Signal{Name: "SIGABRT"}},
		{"net10-crash-native-x64", "mini.zst", "", "SIGSEGV reading 0x8", stacks.Signal{Name: "SIGSEGV", Code: "SEGV_MAPERR", Address: 8, HasAddr: true}},
		{"net10-crash-native-kernel-x64", "kernel.zst", "", "SIGSEGV accessing 0x8", stacks.Signal{Name: "SIGSEGV", Code: "SEGV_MAPERR", Address: 8, HasAddr: true}},
		{"net10-crash-arm64/unhandled", "dump.zst", "stdout.txt", "unhandled System.ApplicationException: unhandled scenario", stacks.Signal{Name: "SIGABRT"}},
		{"net10-crash-arm64/failfast", "dump.zst", "stdout.txt", "FailFast: failfast scenario", stacks.Signal{Name: "SIGABRT"}},
		{"net10-crash-arm64/native", "dump.zst", "", "SIGSEGV", stacks.Signal{Name: "SIGSEGV"}},
	} {
		s := openCase(t, tt.name, tt.dump)
		c := s.Cause()
		if c == nil || c.Text != tt.text || c.Signal == nil || *c.Signal != tt.signal {
			t.Errorf("%s: %+v", tt.name, c)
			continue
		}
		first := s.Threads()[0]
		if first.ID != c.TID || strings.Contains(tt.name, "overflow") {
			continue
		}
		var frames []stacks.Frame
		for th, err := range s.All() {
			if err != nil {
				t.Fatal(err)
			}
			if frames = append(frames, th.Frames...); !th.Crashed || th.TID != c.TID {
				t.Errorf("%s: the first thread is %v", tt.name, th)
			}
			if e := th.Exception; e != nil && strings.HasPrefix(c.Text, "unhandled") {
				frames = append([]stacks.Frame(nil), e.Frames...)
			}
			break
		}
		if tt.said == "" {
			crash := 0
			for i := range frames {
				if strings.HasPrefix(frames[i].Function, "NativeCrash") {
					crash++
				}
			}
			level := strings.Count(names(frames), "Crash.Level(")
			if crash != 5 || level != 4 || !strings.Contains(names(frames), "Program.Main(") {
				t.Errorf("%s: NativeCrash %d times, Level %d times", tt.name, crash, level)
			}
			continue
		}
		said, err := os.ReadFile(corpus.Path(t, tt.name, tt.said))
		if err != nil {
			t.Fatal(err)
		}
		at, found := 0, 0
		for _, m := range printedMethod.FindAllStringSubmatch(string(said), -1) {
			name := strings.Trim(regexp.MustCompile(`g__.*|b__.*|[<>]`).ReplaceAllString(m[1], ""), "_|")
			for at < len(frames) && !strings.Contains(frames[at].Function, name) {
				at++
			}
			if at == len(frames) {
				t.Errorf("%s: %s is not in %s", tt.name, m[0], names(frames))
				break
			}
			found++
			if !strings.Contains(m[0], "__PInvoke") { // is compiled into its caller
				at++
			}
		}
		if found < 7 {
			t.Errorf("%s: %d frames printed", tt.name, found)
		}
	}
}

func names(frames []stacks.Frame) string {
	var b strings.Builder
	for i := range frames {
		b.WriteString(frames[i].Function + "\n")
	}
	return b.String()
}
