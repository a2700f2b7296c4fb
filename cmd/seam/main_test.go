package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/seamwalk/seam/internal/corpus"
	"github.com/seamwalk/seam/internal/memtest"
)

// TestMain makes the test binary behave as the program if SEAM_TEST_RUN is set. So
// tests can run the program and see its exit status, its standard output and its
// standard error.
func TestMain(m *testing.M) {
	if os.Getenv("SEAM_TEST_RUN") != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"seam": main}) // the same for scripts
}

// seam runs the program in a folder.
func seam(t testing.TB, dir string, stdin []byte, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(append(os.Environ(), "SEAM_TEST_RUN=1", "SEAM_IMAGES="), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return status, out.String(), errs.String()
}

// nothing matches no output at all.
const nothing = "^$"

// commandTests are calls of the program over the dumps that TestCommands makes, and
// what must come of them. Standard input is the dump core.
var commandTests = []struct {
	args           string
	status         int
	stdout, stderr string // regular expressions; "" is not looked at
	not            string // must not match stdout
}{
	// Misuse exits with 2 and says where help is.
	{"stacks", 2, nothing, `accepts 1 arg(.|\n)*seam stacks --help`, ""},
	{"stacks --bogus core", 2, nothing, "bogus", ""},
	{"nonsense", 2, nothing, "nonsense", ""},
	{"stacks --format xml core", 2, nothing, "text, json", ""},
	{"info --format perfmap core", 2, nothing, "text, json", ""},
	{"stacks --thread x core", 2, nothing, "not a thread id", ""},
	{"stacks --color blue core", 2, nothing, "auto, always or never", ""},
	{"stacks --limit -1 core", 2, nothing, "not a number of lines", ""},
	{"stacks --width -1 core", 2, nothing, "not a number of characters", ""},
	{"stacks --fold --format json core", 2, nothing, "--fold is for --format text", ""},
	{"stacks --fold --as-profiler core", 2, nothing, "fold", ""},
	{"snapshot --abort-after -1 core", 2, nothing, "not a number of callbacks", ""},
	{"snapshot --requests - --thread 100 core", 2, nothing, "requests thread", ""},
	{"methods --limit 1 --format perfmap core", 2, nothing, "no place", ""},
	{"stacks --symbols --no-symbols core", 2, nothing, "symbols", ""},
	// A flag that would change nothing is refused.
	{"info --limit 1 core", 2, nothing, "unknown flag: --limit", ""},
	{"info --no-symbols core", 2, nothing, "unknown flag", ""},
	{"methods --thread 100 core", 2, nothing, "unknown flag", ""},
	{"trim --limit 1 core out", 2, nothing, "unknown flag", ""},
	{"trim --color always core out", 2, nothing, "unknown flag", ""},
	// A file or thread that does not exist is an error, and the text says what to do.
	{"stacks missing", 1, nothing, "^seam: missing: there is no such file\n$", ""},
	{"stacks text", 1, nothing, "text: not a dump of a known format. Seam reads", ""},
	{"stacks empty", 1, nothing, "^seam: ", ""},
	{"stacks --images nowhere core", 1, nothing, "no such folder", ""},
	{"stacks --thread 7 core", 1, nothing, "no such thread; seam info lists its 2", ""},
	// Help is a result: it goes to standard output.
	{"", 0, "stacks", nothing, ""},
	{"stacks --help", 0, "from the leaf to the root(.|\n)*--images DIR", nothing, ""},
	{"help info", 0, "where their bytes come from", nothing, ""},

	{"stacks core", 0, `ELF core(.|\n)*\nThread 100\n(.|\n)*\nThread 101\n(.|\n)*\n2 stacks`, nothing, "\x1b"},
	{"stacks --thread 101 core", 0, "Thread 101", nothing, "Thread 100"},
	{"stacks --thread 0x65 core", 0, "Thread 101", nothing, "Thread 100"},
	{"stacks --color always core", 0, "\x1b", nothing, ""},
	{"stacks --format json core.zst", 0, `"tid": 100(.|\n)*"tid": 101`, nothing, ""},
	{"stacks --format json --images none core", 0, `"tid": 100`, nothing, ""},
	{"stacks -", 0, "Thread 100", nothing, ""},
	// A dump without threads, methods or runtime does not look like success.
	{"stacks nothreads", 0, "no stacks: the dump tells of no thread(.|\n)*warning: ", nothing, "complete"},
	{"stacks --format json nothreads", 0, `"code": "no_threads"`, nothing, ""},
	{"stacks --strict nothreads", 3, "no stacks", nothing, ""},
	{"info --strict nothreads", 3, "0 threads", nothing, ""},
	{"trim nothreads out", 1, nothing, "tells of no thread", ""},
	{"info core", 0, "2 threads", nothing, ""},
	{"info --format json core", 0, `"schema": 1`, nothing, ""},
	{"methods core", 0, "(?m)^warning: no methods: there is no runtime in this process", nothing, ""},
	{"methods --strict core", 3, "no methods", nothing, ""},
	{"methods --format json core", 0, `"methods": \[\](.|\n)*"code": "no_methods"`, nothing, ""},
	{"methods --format perfmap core", 0, nothing, "(?m)^seam: warning: no methods", ""},
	{"seed core", 1, nothing, "no runtime", ""},
	{"snapshot core", 1, nothing, "no runtime", ""},
	// A stack that ends in code of no image is incomplete: an error with --strict.
	{"stacks --strict core", 3, "Thread 100", nothing, ""},
}

// TestCommands: exit statuses, and what goes to standard output and error.
func TestCommands(t *testing.T) {
	dir, core := t.TempDir(), makeCore([]uint32{100, 101})
	for name, b := range map[string][]byte{"core": core, "core.zst": pack(core), "nothreads": makeCore(nil), "empty": nil, "text": []byte("not a dump\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range commandTests {
		t.Run(tt.args, func(t *testing.T) {
			status, stdout, stderr := seam(t, dir, core, nil, strings.Fields(tt.args)...)
			if status != tt.status {
				t.Errorf("exit status %d, want %d", status, tt.status)
			}
			if tt.stdout != "" && !regexp.MustCompile(tt.stdout).MatchString(stdout) {
				t.Errorf("standard output does not match %s:\n%s", tt.stdout, stdout)
			}
			if tt.stderr != "" && !regexp.MustCompile(tt.stderr).MatchString(stderr) {
				t.Errorf("standard error does not match %s:\n%s", tt.stderr, stderr)
			}
			if tt.not != "" && strings.Contains(stdout, tt.not) {
				t.Errorf("standard output has %q:\n%s", tt.not, stdout)
			}
		})
	}
}

// makeCore makes an ELF core of x86-64 Linux with one page of stack, which is all
// zeros. The first thread stands at address 0 on that page: its stack is complete.
// The others stand where there is no code, on stacks that the core does not have.
func makeCore(tids []uint32) []byte {
	const stack, page = 0x7ffd00001000, 0x1000
	c := memtest.Core{Loads: []memtest.Load{{Addr: stack, Data: make([]byte, page), Flags: elf.PF_R | elf.PF_W}}}
	for i, tid := range tids {
		c.Thread(tid, uint64(i)*0x1000, stack+uint64(i)*page)
	}
	return c.Bytes()
}

func pack(b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(b, nil)
}

// TestSameThreads: one goroutine and many write the same threads in the same order,
// to the byte.
func TestSameThreads(t *testing.T) {
	dump := corpus.Path(t, filepath.Join("net10-hello-x64", "normal.zst"))
	var first string
	for _, n := range []string{"1", "8"} {
		status, out, errs := seam(t, "", nil, []string{"GOMAXPROCS=" + n}, "stacks", "--format", "json", "--images", "none", dump)
		if status != 0 || !json.Valid([]byte(out)) {
			t.Fatalf("GOMAXPROCS=%s: exit status %d, %d bytes\n%s", n, status, len(out), errs)
		}
		if first == "" {
			first = out
		} else if first != out {
			t.Errorf("GOMAXPROCS=%s gives other output than 1", n)
		}
	}
}

// TestTrim: a trimmed dump without any file gives the stacks that the whole dump
// gives with its image files, byte for byte.
func TestTrim(t *testing.T) {
	dump := corpus.Path(t, filepath.Join("net10-hello-x64", "normal.zst"))
	dir := t.TempDir()
	threads := func(dump string, more ...string) string {
		status, out, errs := seam(t, dir, nil, nil, append([]string{"stacks", "--format", "json", dump}, more...)...)
		if status != 0 {
			t.Fatalf("%s: exit status %d: %s", dump, status, errs)
		}
		_, out, _ = strings.Cut(out, "\n \"threads\": ")
		out, _, _ = strings.Cut(out, "\n \"warnings\": ")
		return out
	}
	want := threads(dump)
	status, out, errs := seam(t, dir, nil, nil, "trim", dump, "small.zst")
	if status != 0 || !strings.Contains(out, "pages read") {
		t.Fatalf("exit status %d: %s%s", status, out, errs)
	}
	if got := threads("small.zst", "--images", "none"); got == "" || got != want {
		t.Errorf("the trimmed dump has other threads")
	}
	if st, err := os.Stat(filepath.Join(dir, "small.zst")); err != nil || st.Size() > 1<<20 {
		t.Errorf("the trimmed dump: %v, %v", st, err)
	}
	status, piped, errs := seam(t, dir, nil, nil, "trim", dump, "-")
	if status != 0 || !strings.Contains(errs, "pages read") {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	if status, out, _ := seam(t, dir, []byte(piped), nil, "stacks", "--images", "none", "-"); status != 0 || !strings.Contains(out, "Program.Main") {
		t.Errorf("what trim wrote to standard output does not open: %d", status)
	}
	// The dump itself is never overwritten, and no temporary file is left behind.
	if status, _, errs := seam(t, dir, nil, nil, "trim", "small.zst", "./small.zst"); status != 1 || !strings.Contains(errs, "the dump itself") {
		t.Errorf("exit status %d: %s", status, errs)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left in the folder: %v", list)
	}
}

// TestOtherBuild: a file that has an image's name and is of another build is not
// used. A warning names it.
func TestOtherBuild(t *testing.T) {
	dump := corpus.Path(t, filepath.Join("net10-hello-x64", "normal.zst"))
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "libc.so.6"), exe, 0o666); err != nil {
		t.Fatal(err)
	}
	status, out, errs := seam(t, dir, nil, nil, "stacks", "--images", "none", "--images", dir, dump)
	if status != 0 || !regexp.MustCompile(`warning: .*libc\.so\.6 is not the libc\.so\.6 of the dump`).MatchString(out) {
		t.Errorf("exit status %d: %s", status, errs)
	}
}
