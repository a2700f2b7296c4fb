package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/stacks"
)

// A page is text for eyes under way.
type page struct {
	sink
	style Style
}

// A color is an ANSI escape (ECMA-48, 8.3.117 SGR), used on a terminal only.
type color string

const (
	plain  color = ""
	bold   color = "\x1b[1m"
	dim    color = "\x1b[2m"
	green  color = "\x1b[32m"
	yellow color = "\x1b[33m"
	reset        = "\x1b[0m"
)

func (p *page) paint(c color, s string) {
	if s != "" {
		p.on(c)
		p.buf = append(p.buf, s...)
		p.off(c)
	}
}

// on and off stand around what is in a color.
func (p *page) on(c color) {
	if p.style.Color {
		p.buf = append(p.buf, c...)
	}
}

func (p *page) off(c color) {
	if p.style.Color && c != plain {
		p.buf = append(p.buf, reset...)
	}
}

func (p *page) line(c color, s string) {
	p.paint(c, s)
	p.buf = append(p.buf, '\n')
}

// title says in a line which process the dump is of.
func (p *page) title(h *Head) {
	d := &h.Dump
	kind := map[string]string{"elf-core": "ELF core", "minidump": "minidump"}[d.Format]
	if kind == "" {
		kind = clean(d.Format)
	}
	s := clean(d.Path) + ": " + kind
	if d.PID != 0 {
		s += fmt.Sprintf(" of process %d", d.PID)
	}
	s += ", " + clean(d.OS) + " " + clean(d.Arch)
	for i := range d.Runtimes {
		s += ", " + runtimeName(&d.Runtimes[i])
	}
	p.line(bold, s)
}

// runtimeName says which runtime r is.
func runtimeName(r *stacks.Runtime) string {
	version := r.Version
	if version == "" {
		version = "of unknown version"
	}
	kind := runtimeKinds[r.Kind]
	if kind == "" {
		kind = clean(r.Kind)
	}
	return fmt.Sprintf("%s %s (%s)", kind, clean(version), clean(r.Image))
}

// runtimeKinds are the names of runtimes, for eyes.
var runtimeKinds = map[string]string{"coreclr": ".NET", "nativeaot": ".NET NativeAOT"}

// tail writes what is missing, and what to do about it.
func (p *page) tail(t *stacks.Summary) {
	if len(t.Warnings) > 0 {
		p.line(plain, "")
		for _, w := range t.Warnings {
			at := ""
			if w.Offset >= 0 {
				at = fmt.Sprintf(" (at offset %#x)", w.Offset)
			}
			p.line(yellow, "warning: "+clean(w.Text)+at)
		}
	}
	if len(t.Missing) == 0 {
		return
	}
	p.line(plain, "")
	p.line(bold, "These files were not found; with them the stacks would tell more:")
	name, id := 0, 0
	for i := range t.Missing {
		m := &t.Missing[i]
		name, id = max(name, length(clean(m.Name))), max(id, len(m.ID))
	}
	for i := range t.Missing {
		m := &t.Missing[i]
		p.line(yellow, fmt.Sprintf("  %s  %s  %s", pad(clean(m.Name), name), pad(clean(m.ID), id), cost(m)))
	}
	p.line(plain, "Give the folder that holds them: --images DIR")
}

// cost says what it costs that a file is missing.
func cost(m *stacks.Missing) string {
	var parts []string
	if m.Stops > 0 {
		parts = append(parts, plural(m.Stops, "stack or part of one ends", "stacks or parts of them end")+" there")
	}
	if m.Unnamed > 0 {
		parts = append(parts, plural(m.Unnamed, "frame without a name", "frames without a name"))
	}
	if m.Unlined > 0 {
		parts = append(parts, plural(m.Unlined, "frame without a line", "frames without a line"))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// warnings returns the warnings of t and, as warnings, the images that are missing.
// A PDB that nobody has is no fault of a dump, and is in the list of what is missing
// alone.
func warnings(t *stacks.Summary) []stacks.Warning {
	all := t.Warnings[:len(t.Warnings):len(t.Warnings)]
	for i := range t.Missing {
		m := &t.Missing[i]
		if m.Kind != stacks.MissingImage {
			continue
		}
		s := m.Name
		if m.ID != "" {
			s += " (" + m.ID + ")"
		}
		all = append(all, stacks.Warning{Code: "image_missing", Text: s + " was not found: " + cost(m), Offset: -1})
	}
	return all
}

// clean replaces what would change the terminal or the order of letters. Names
// come from the dump, and a dump can come from anybody.
func clean(s string) string {
	ok := true
	for i := range len(s) { // names are ASCII, nearly all
		ok = ok && s[i] >= ' ' && s[i] < 0x7f
	}
	if ok {
		return s
	}
	ok = utf8.ValidString(s)
	for _, r := range s {
		if !printable(r) {
			ok = false
			break
		}
	}
	if ok {
		return s
	}
	return strings.Map(func(r rune) rune {
		if printable(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// printable leaves out controls and the format characters (Cf) that reorder or
// hide text.
func printable(r rune) bool { return r >= ' ' && r < 0x7f || r > 0x9f && unicode.IsPrint(r) }

func length(s string) int { return utf8.RuneCountInString(s) }

// appendPadded appends s and spaces up to n characters; spaces first for a
// negative n.
func appendPadded(b []byte, s string, n int) []byte {
	const spaces = "                                "
	k := max(n, -n) - length(s)
	if n >= 0 {
		b = append(b, s...)
	}
	for ; k > 0; k -= len(spaces) {
		b = append(b, spaces[:min(k, len(spaces))]...)
	}
	if n < 0 {
		b = append(b, s...)
	}
	return b
}

// appendAddr appends an address with all its digits.
func appendAddr(b []byte, a arch.Addr) []byte {
	b = append(b, "0x"...)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[a>>shift&15])
	}
	return b
}

// fit returns a function's name and its suffix for the rest of a line that has
// used characters in front of them.
func (p *page) fit(name, suffix string, used int) string {
	if p.style.Width == 0 {
		return clean(name) + suffix
	}
	return shorten(clean(name), suffix, max(p.style.Width-used, minName))
}

func pad(s string, n int) string {
	if k := n - length(s); k > 0 {
		return s + strings.Repeat(" ", k)
	}
	return s
}
