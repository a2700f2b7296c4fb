package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManual: groff finds nothing to warn of in any page, and prints every word
// of the help texts, examples and flags as they stand.
func TestManual(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("no groff here")
	}
	root, _ := newRoot()
	root.InitDefaultCompletionCmd()
	dir := t.TempDir()
	if err := writeManual(dir, root); err != nil {
		t.Fatal(err)
	}
	pages := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		pages++
		file := filepath.Join(dir, pageName(cmd)+".1")
		shown := " " + printed(t, file) + " "
		texts := strings.Split(cmd.Long, "\n\n")
		texts = append(texts, cmd.Short, cmd.Example, cmd.UseLine())
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, usage := pflag.UnquoteUsage(f)
			texts = append(texts, "--"+f.Name, usage)
		})
		for _, text := range texts {
			if want := strings.Join(strings.Fields(text), " "); !strings.Contains(shown, " "+want) {
				t.Errorf("%s does not show %q", filepath.Base(file), want)
			}
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				check(c)
			}
		}
	}
	check(root)
	if files, err := os.ReadDir(dir); err != nil || len(files) != pages || pages < 9 {
		t.Errorf("%d pages for %d commands, %v", len(files), pages, err)
	}
}

// printed returns the words of a page as groff prints it, with one space between.
func printed(t *testing.T, file string) string {
	cmd := exec.Command("groff", "-ww", "-man", "-Tutf8", "-P-c", "-rLL=200n", file)
	var warnings strings.Builder
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || warnings.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, warnings.String())
	}
	bold := regexp.MustCompile(`.\x08`) // what is overstruck, to look bold or underlined
	return strings.Join(strings.Fields(bold.ReplaceAllString(string(out), "")), " ")
}

// TestRoff: what a line of a help text may begin with or contain.
func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		".NET":         `\&.NET`,
		"--x 'a b' `c": `\-\-x \(aqa b\(aq \(gac`,
		`a\b`:          `a\eb`,
		"'tis":         `\(aqtis`, // ' begins a command, too
		"~ ^":          `\(ti \(ha`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	const text = "One\n.two-\n\nA list:\n  x  1\n\n  y  2\nThree."
	const want = "One\n\\&.two\\-\n.PP\nA list:\n.nf\n  x  1\n.PP\n  y  2\n.fi\nThree.\n"
	if got := roffText(text); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
