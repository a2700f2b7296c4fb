package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// readme returns README.md, and the blocks of commands and output in it.
func readme(t *testing.T) (text string, blocks []string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(b), "\n```") {
		if lang, block, _ := strings.Cut(part, "\n"); i%2 == 1 && lang == "" {
			blocks = append(blocks, block)
		}
	}
	if len(blocks) < 4 {
		t.Fatalf("README.md has %d blocks", len(blocks))
	}
	return string(b), blocks
}

// TestExamples: each call of seam in README.md and in the help texts does what
// it is there for. The names in them stand for a dump that ships, for one of its
// threads, and for folders and files that there are; what a line pipes into
// another program, or does afterwards, is left out.
func TestExamples(t *testing.T) {
	dir := t.TempDir()
	core, err := os.ReadFile(filepath.Join("..", "..", "testdata", "dumps", "net10-hello", "core.zst"))
	if err != nil {
		t.Fatal(err)
	}
	context := strings.Repeat("00", 1232) // of x86-64
	for name, b := range map[string][]byte{"core.1234": core, "core.1234.zst": core, "small.core.zst": core, "context.bin": []byte(context),
		"calls.jsonl": []byte(`{"walk": "x", "os_tid": 3684, "mode": "self"}`), "app/notes": nil, "srv/symbols/notes": nil} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var calls []string
	_, blocks := readme(t)
	for _, b := range blocks {
		calls = append(calls, strings.Split(b, "\n")...)
	}
	root, _ := newRoot()
	for _, c := range append(root.Commands(), root) {
		if c.Example == "" && c.IsAvailableCommand() {
			t.Errorf("%s has no example", c.CommandPath())
		}
		calls = append(calls, strings.Split(c.Example, "\n")...)
	}
	ran := map[string]bool{}
	after := regexp.MustCompile(` [|>&].*|   .*`) // what a shell does with it, or a remark
	here := strings.NewReplacer(" /srv/", " srv/", " /usr/", " usr/", " 1240", " 3684", "~/", "")
	for _, line := range calls {
		call, isCall := strings.CutPrefix(here.Replace(after.ReplaceAllString(strings.TrimSpace(line), "")), "seam ")
		if !isCall || ran[call] {
			continue
		}
		ran[call] = true
		status, stdout, stderr := seam(t, dir, nil, nil, strings.Fields(call)...)
		if status != exitDone || stdout == "" && !strings.HasPrefix(call, "man ") {
			t.Errorf("%s: exit status %d, %d bytes\n%s", line, status, len(stdout), stderr)
		}
	}
	if len(ran) < 25 {
		t.Errorf("only %d examples were found", len(ran))
	}
}

// TestReadmeStack: the stack in README.md is the one that its command prints.
func TestReadmeStack(t *testing.T) {
	text, blocks := readme(t)
	const command = "go run ./cmd/seam stacks testdata/dumps/net10-hello/core.zst"
	if !strings.Contains(text, "\n"+command+"\n") {
		t.Errorf("README.md does not have %s", command)
	}
	status, out, errs := seam(t, filepath.Join("..", ".."), nil, nil, strings.Fields(strings.TrimPrefix(command, "go run ./cmd/seam "))...)
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, errs)
	}
	found := false
	for _, b := range blocks {
		if strings.HasPrefix(b, "Thread ") {
			found = true
			if !strings.Contains(out, "\n"+strings.TrimRight(b, "\n")+"\n") {
				t.Errorf("the program does not print what README.md shows:\n%s", b)
			}
		}
	}
	if !found {
		t.Error("README.md shows no stack")
	}
}

// TestReadmeProgram: the program in README.md is built as a module outside of this
// one, and shows of dumps what seam stacks shows.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	text, _ := readme(t)
	_, program, found := strings.Cut(text, "\n```go\n")
	program, _, _ = strings.Cut(program, "\n```\n")
	if !found {
		t.Fatal("README.md has no program")
	}
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	// As go mod tidy would write it, which may need the network.
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(mod), "\n")
	sums, err := os.ReadFile(filepath.Join(top, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"main.go": program + "\n", "go.sum": string(sums),
		"go.mod": "module example.org/stacks\n" + requires + "\nrequire github.com/seamwalk/seam v0.0.0\nreplace github.com/seamwalk/seam => " + top + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	exe := filepath.Join(dir, "stacks"+exeSuffix())
	runIn(t, dir, "go", "build", "-mod=mod", "-o", exe, ".")
	for _, name := range dumps(t) {
		core := filepath.Join(top, "testdata", "dumps", name, "core.zst")
		status, want, errs := seam(t, dir, nil, nil, "stacks", "--images", "none", core) // the program asks for no files
		if status != 0 {
			t.Fatalf("exit status %d: %s", status, errs)
		}
		compareStacks(t, name, stackLines(runIn(t, dir, exe, core)), stackLines(want))
	}
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// stackLines returns what a page shows of stacks, without what the two programs
// write each in its own way: columns, digits of addresses, a sign for no module.
func stackLines(page string) (lines []string) {
	frame := regexp.MustCompile(`^ +(?:\d+ +)?0x0*([0-9a-f]+) +(.*)$`)
	inside := false
	for _, line := range strings.Split(page, "\n") {
		line = strings.TrimRight(line, " ")
		switch m := frame.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "Thread "):
			inside = true
			lines = append(lines, line)
		case !inside || line == "":
			inside = false
		case strings.Contains(line, "frames may be missing here: "):
			lines = append(lines, line[strings.Index(line, "frames may be"):])
		case m != nil:
			place := strings.Join(strings.Fields(strings.TrimPrefix(m[2], "- ")), " ")
			lines = append(lines, m[1]+" "+place)
		default:
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// compareStacks holds what a program shows of a dump's stacks against what seam shows.
func compareStacks(t *testing.T, dump string, got, want []string) {
	t.Helper()
	if len(got) != len(want) || len(want) < 10 {
		t.Errorf("%s: %d lines, seam has %d", dump, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: line %d is\n\t%s\nseam has\n\t%s", dump, i, got[i], want[i])
			return
		}
	}
}

// TestCleanClone: in a clone of what is in this folder, the command that
// README.md has for installing makes a program that needs no other file and
// knows its commit.
func TestCleanClone(t *testing.T) {
	t.Parallel()
	const command = "CGO_ENABLED=0 go install ./cmd/seam"
	if text, _ := readme(t); !strings.Contains(text, "\n"+command+"\n") {
		t.Errorf("README.md does not have %s", command)
	}
	if runtime.GOOS != "linux" {
		t.Skip("the file is looked at by readelf, which reads ELF")
	}
	for _, tool := range []string{"git", "readelf"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool + " here")
		}
	}
	clone, bin := cloneHere(t), t.TempDir()
	install := func() (version map[string]any) {
		// Without the folder's path in them, packages are compiled once for all clones.
		runIn(t, clone, "env", "GOBIN="+bin, "GOFLAGS=-buildvcs=true -trimpath", "sh", "-c", command)
		out := runIn(t, clone, filepath.Join(bin, "seam"), "version", "--format", "json")
		if err := json.Unmarshal([]byte(out), &version); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return version
	}
	commit := strings.TrimSpace(runIn(t, clone, "git", "rev-parse", "HEAD"))
	v := install()
	if v["commit"] != commit || v["modified"] != false || v["version"] == nil || v["commit_time"] == nil {
		t.Errorf("of commit %s the program says %v", commit, v)
	}
	if segments := runIn(t, clone, "readelf", "-lW", filepath.Join(bin, "seam")); strings.Contains(segments, "INTERP") || strings.Contains(segments, "DYNAMIC") {
		t.Errorf("the program needs other files:\n%s", segments)
	}
	if err := os.WriteFile(filepath.Join(clone, "cmd", "seam", "changed.go"), []byte("package main\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if v := install(); v["commit"] != commit || v["modified"] != true {
		t.Errorf("of commit %s with a changed file the program says %v", commit, v)
	}
}

// cloneHere makes a repository of the files that a commit of this folder would
// have, and returns where it is.
func cloneHere(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	top := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(top, ".git")); err != nil {
		t.Skip("no repository here")
	}
	for _, name := range strings.Split(runIn(t, top, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		b, err := os.ReadFile(filepath.Join(top, name))
		if err != nil || name == "" {
			continue // removed, and not committed yet
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	runIn(t, dir, "git", "init", "-q")
	runIn(t, dir, "git", "add", ".")
	runIn(t, dir, "git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "--no-verify", "-m", "x")
	return dir
}

// runIn runs a program in a folder and returns what it prints.
func runIn(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GIT_") { // as a hook has them
			cmd.Env = append(cmd.Env, e)
		}
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}
