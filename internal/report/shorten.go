package report

import "strings"

// minName is how many characters a function's name gets on the narrowest
// terminal.
const minName = 20

// ellipsis stands for what was left out.
const ellipsis = "…"

// shorten makes a function's name and its suffix fit into n characters, 0 being
// any number. It leaves out what tells least first: the parameters, the generic
// arguments, the namespace, then the middle.
func shorten(name, suffix string, n int) string {
	if n <= 0 || length(name)+length(suffix) <= n {
		return name + suffix
	}
	n -= length(suffix)
	for _, less := range []func(string) string{elideParams, elideArgs, lastTwo} {
		if name = less(name); length(name) <= n {
			return name + suffix
		}
	}
	return cut(name, n) + suffix
}

// elideParams leaves out what stands in the last parentheses.
func elideParams(s string) string {
	if !strings.HasSuffix(s, ")") || strings.HasSuffix(s, "()") {
		return s
	}
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return s[:i] + "(" + ellipsis + ")"
			}
		}
	}
	return s
}

// elideArgs leaves out what stands in angle brackets.
func elideArgs(s string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '<':
			if depth++; depth == 1 {
				b.WriteString("<" + ellipsis)
			}
		case c == '>' && depth > 0:
			if depth--; depth == 0 {
				b.WriteByte('>')
			}
		case depth == 0:
			b.WriteByte(c)
		}
	}
	if depth != 0 {
		return s // operator<, or a broken name
	}
	return b.String()
}

// lastTwo leaves the type and the method of a dotted name.
func lastTwo(s string) string {
	name, rest := s, ""
	if i := strings.IndexAny(s, "(<"); i > 0 {
		name, rest = s[:i], s[i:]
	}
	i := strings.LastIndexByte(name, '.')
	// A generic type keeps its method behind the brackets; the name in front
	// of them is the type's alone.
	if i > 0 && !strings.HasPrefix(rest, "<") {
		i = strings.LastIndexByte(strings.TrimRight(name[:i], "."), '.')
	}
	if i <= 0 {
		return s
	}
	return ellipsis + name[i:] + rest
}

// cut leaves the two ends of s, n characters in all. The end tells more.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	if n <= 1 {
		return ellipsis
	}
	front := (n - 1) / 3
	return string(r[:front]) + ellipsis + string(r[len(r)-(n-1-front):])
}
