package objfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const libSource = `
static int hidden(int x) { return x * 3; }
int counter = 7;
int *pointer = &counter;
int exported(int x) { return hidden(x) + *pointer; }
#define TEN(x) x "0", x "1", x "2", x "3", x "4", x "5", x "6", x "7", x "8", x "9"
static const char *const words[] = {TEN("a"), TEN("b"), TEN("c"), TEN("d"), TEN("e"), TEN("f"), TEN("g"), TEN("h"),
	TEN("i"), TEN("j"), TEN("k"), TEN("l"), TEN("m"), TEN("n"), TEN("o"), TEN("p")};
const char *word(int i) { return words[i]; }
`

// buildELF returns a shared library as gcc makes it, with more flags if given.
func buildELF(t testing.TB, flags ...string) []byte {
	t.Helper()
	args := append([]string{"-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1"}, flags...)
	return build(t, "gcc", "l.so", libSource, args)
}

// buildPE returns a DLL as clang and lld make it, linked at base 0x180000000.
func buildPE(t testing.TB) []byte {
	t.Helper()
	const source = `
#define export __declspec(dllexport)
export int counter = 7;
export int *pointer = &counter;
export int twice(int x) { return 2 * x; }
export int thrice(int x) { return 3 * x + *pointer; }
int _DllMainCRTStartup(void *a, unsigned b, void *c) { return 1; }
`
	return build(t, "clang", "l.dll", source, []string{"--target=x86_64-pc-windows-msvc", "-fuse-ld=lld", "-shared", "-nostdlib", "-O1", "-gcodeview", "-g"})
}

// build returns what a compiler makes of a C file; without the compiler the test
// is skipped.
func build(t testing.TB, compiler, name, source string, args []string) []byte {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	src, out := filepath.Join(dir, "l.c"), filepath.Join(dir, name)
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(compiler, append(args, "-o", out, src)...)
	cmd.Dir = dir
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%s: %v: %s", compiler, err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// output returns what a tool prints of a file, which may warn of what it has no
// use for; without the tool the test is skipped.
func output(t testing.TB, data []byte, tool string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, append(args, path)...).Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("%s: %v", tool, err)
	}
	return string(out)
}

// run runs a tool; if it cannot, the test is skipped.
func run(t testing.TB, tool string, args ...string) {
	t.Helper()
	if msg, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Skipf("%s: %v: %s", tool, err, msg)
	}
}
