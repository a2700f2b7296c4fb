package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan returns the command that writes the manual. Help does not list it: it is
// for those who package Seam.
//
// Package cobra/doc writes manuals too. But it takes help texts for Markdown: the
// lines of a list run together, and <hex CONTEXT> would be a tag. And it needs
// three more modules (go-md2man, blackfriday, yaml) and half a megabyte of program.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual's pages into a folder",
		Long: `Man writes the manual into DIR, which it makes if it is not there: seam.1, and a
page for each command, seam-stacks.1 and others. The pages are made of the same
texts as --help.`,
		Example: `  seam man /usr/local/share/man/man1
  seam man pages && man -l pages/seam-stacks.1`,
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return writeManual(args[0], cmd.Root())
		},
	}
}

// writeManual writes into dir a page for cmd, and one for each command below it
// that help lists.
func writeManual(dir string, cmd *cobra.Command) error {
	err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), []byte(manPage(cmd)), 0o644)
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			err = errors.Join(err, writeManual(dir, c))
		}
	}
	return err
}

// pageName returns the name of cmd's page: seam-stacks for seam stacks.
func pageName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "-")
}

// manPage returns the page of cmd in the macros of man(7).
func manPage(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, ".SH %s\n", name) }

	// The date of the commit: the same program writes the same page every day.
	v := thisVersion()
	date, _, _ := strings.Cut(v.CommitTime, "T")
	fmt.Fprintf(&b, ".TH %q 1 %q %q\n", strings.ToUpper(pageName(cmd)), date, "seam "+v.Version)
	b.WriteString(".nh\n.ad l\n") // neither divided words nor stretched lines: names stay whole
	section("NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	section("SYNOPSIS")
	fmt.Fprintf(&b, ".B %s\n", roff(cmd.UseLine()))
	section("DESCRIPTION")
	b.WriteString(roffText(cmd.Long))
	section("OPTIONS")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			b.WriteString(roffFlag(f))
		}
	})
	if cmd.Example != "" {
		section("EXAMPLES")
		b.WriteString(roffText(cmd.Example))
	}
	section("SEE ALSO")
	b.WriteString(roffSeeAlso(cmd))
	return b.String()
}

// roffSeeAlso returns the names of the pages above and below that of cmd.
func roffSeeAlso(cmd *cobra.Command) string {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			pages = append(pages, pageName(c))
		}
	}
	var b strings.Builder
	for i, page := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(page), comma)
	}
	return b.String()
}

// roffFlag returns the entry of a flag: its names, what it takes, what it does
// and its default, as help has them.
func roffFlag(f *pflag.Flag) string {
	takes, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if takes != "" {
		takes = ` \fI` + roff(takes) + `\fR`
	}
	switch f.DefValue {
	case "", "0", "false", "[]":
	default:
		usage += fmt.Sprintf(" (default %s)", f.DefValue)
	}
	usage = strings.Join(strings.Fields(usage), " ") // help breaks long ones in two
	return fmt.Sprintf(".TP\n\\fB%s\\fR%s\n%s\n", roff(name), takes, roff(usage))
}

// roffText returns a help text: lines that begin with a space or a tab stand as
// they are, all others are paragraphs to be filled, with empty lines between.
func roffText(text string) string {
	var b strings.Builder
	literal := false // in a display of lines as they are
	for _, line := range strings.Split(strings.Trim(text, "\n"), "\n") {
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		if indented != literal && line != "" {
			literal = indented
			if literal {
				b.WriteString(".nf\n")
			} else {
				b.WriteString(".fi\n")
			}
		}
		if line == "" {
			b.WriteString(".PP\n")
		} else {
			b.WriteString(roff(line) + "\n")
		}
	}
	if literal {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roffEscape has the characters that roff would take for commands, or print as
// other characters: "-" comes out as a typographic hyphen, with which a flag that is
// copied from the page does not work in a shell.
var roffEscape = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\t", "    ")

// roff returns text so that roff prints it as it stands. A line that begins with
// a dot would be a command.
func roff(text string) string {
	text = roffEscape.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
