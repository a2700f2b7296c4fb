package symbolize

import (
	"slices"
	"strings"

	"github.com/seamwalk/seam/managed/code"
)

// Managed returns a method's name for eyes, Namespace.Type<T>.Method<U>(Params),
// with what C# compilers generate called as the source that it was generated from.
// "?" stands for what is not known: (?) for parameters, and Method?( where not even
// that is known whether the method is generic. Without a name it is empty.
func Managed(m *code.Method) string {
	if m.Name == "" || m.Verbatim {
		return m.Name
	}
	name, outer := sourceName(m.Name)
	var b strings.Builder
	typeArgs := m.TypeArgs
	for i := 0; i < len(name); {
		switch c := name[i]; {
		case c == '+':
			b.WriteByte('.')
			i++
		case c == '`':
			n, end := arity(name, i+1)
			i = end
			if m.Unknown&code.PartTypeArgs != 0 {
				args(&b, slices.Repeat([]string{"?"}, min(n, maxUnknown)))
				continue
			}
			if n == 0 || n > len(typeArgs) {
				continue // an open type; its arity is no help to anybody
			}
			args(&b, typeArgs[:n])
			typeArgs = typeArgs[n:]
		default:
			b.WriteByte(c)
			i++
		}
	}
	if len(m.MethodArgs) > 0 {
		args(&b, m.MethodArgs)
	}
	if m.Unknown&code.PartMethodArgs != 0 {
		b.WriteByte('?')
	}
	if outer {
		// Its parameters became fields of the state machine.
		b.WriteString("()")
		return b.String()
	}
	if m.Dynamic && len(m.Params) == 0 {
		return b.String() // which says nothing of parameters
	}
	if m.Unknown&code.PartParams != 0 {
		b.WriteString("(?)")
		return b.String()
	}
	b.WriteByte('(')
	for i, p := range m.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(shared(p))
	}
	b.WriteByte(')')
	return b.String()
}

// maxUnknown bounds how many generic arguments that are not known are shown.
const maxUnknown = 16

func args(b *strings.Builder, list []string) {
	b.WriteByte('<')
	for i, a := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(shared(a))
	}
	b.WriteByte('>')
}

// shared shortens the class that stands for any reference type in code that
// instantiations share; its namespace says nothing.
func shared(arg string) string {
	if arg == "System.__Canon" {
		return "__Canon"
	}
	return arg
}

// arity reads the number behind a backtick.
func arity(s string, i int) (n, end int) {
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n = min(n*10+int(s[i]-'0'), 1<<16)
	}
	return n, i
}

// sourceName undoes the names that C# compilers give to what they generate
// (GeneratedNames.cs of dotnet/roslyn):
//
//	Type+<Outer>d__3.MoveNext       the state machine of an async method or iterator
//	Type+<>c.<Outer>b__0_1          a lambda, in the closure class or in Type itself
//	Type+<>c__DisplayClass1_0.<..>  a closure class
//	Type.<Outer>g__Local|3_0        a local function
//	Type+<Outer>d__3.<>m__Finally1  a finally block of an iterator
//	Type.<Main>                     what waits for an async Main
//	<File>F0123ABCD__Type           a type of one file alone
//
// outer says that the parameters of what is left are not those of the method.
func sourceName(name string) (s string, outer bool) {
	if !strings.Contains(name, "<") {
		return name, false
	}
	// The classes of closures and state machines are parts of the path
	// between the type and the method.
	parts := split(name)
	if n := len(parts); n < 2 || parts[n-1] != ".MoveNext" && !strings.HasPrefix(parts[n-1], ".<") {
		// A constructor, say, of such a class: it is that class's own.
		return strings.Join(fileLocal(parts), ""), false
	}
	parts = fileLocal(parts)
	var out strings.Builder
	for i, p := range parts {
		last := i == len(parts)-1
		sep := ""
		if i > 0 {
			sep = p[:1]
			p = p[1:]
		}
		of, kind, rest := generated(p)
		switch {
		case kind == 0:
		case of == "" && !last: // <>c, <>c__DisplayClass1_0
			continue
		case kind == 'd' && i == len(parts)-2 && ofStateMachine(parts[i+1]):
			outer = true
			// A type's name has no dots: those of a method that implements an
			// interface's have become dashes.
			p = strings.ReplaceAll(undo(of), "-", ".") + typeArity(rest)
		case last && (kind == 'b' || kind == 'g' || kind == '$'):
			p = undo(p)
		}
		if last && p == "<Main>" {
			p = "Main"
		}
		out.WriteString(sep)
		out.WriteString(p)
		if outer {
			return strings.ReplaceAll(out.String(), "+", "."), true
		}
	}
	return out.String(), false
}

// ofStateMachine reports whether a method of a state machine is code of the method
// that the machine was made from.
func ofStateMachine(method string) bool {
	return method == ".MoveNext" || strings.HasPrefix(method, ".<>m__Finally")
}

// fileLocal undoes the names of types that are of one file alone: the file's name
// and a hash stand in front of theirs.
func fileLocal(parts []string) []string {
	for i, p := range parts[:len(parts)-1] {
		at := strings.IndexByte(p, '<')
		if at < 0 {
			continue
		}
		if of, kind, rest := generated(p[at:]); kind == 'F' && of != "" {
			if _, name, ok := strings.Cut(rest, "__"); ok && name != "" {
				parts[i] = p[:at] + name
			}
		}
	}
	return parts
}

// undo tells one generated name as the source has it.
func undo(p string) string {
	of, kind, rest := generated(p)
	switch kind {
	case 'b':
		// b__<method>_<lambda>, or b__<lambda> in a closure class. The number
		// tells a method's lambdas apart.
		return undo(of) + ".lambda_" + rest[strings.LastIndexByte(rest, '_')+1:]
	case 'g':
		local := strings.TrimPrefix(rest, "__")
		if n := strings.IndexByte(local, '|'); n >= 0 {
			local = local[:n]
		}
		return undo(of) + "." + local
	case '$': // <Main>$ and <Main>$Local of a program without a class
		return undo(of)
	}
	return p
}

// generated takes <of>k__rest apart. kind is 0 for a name of the programmer's.
func generated(p string) (of string, kind byte, rest string) {
	if p == "" || p[0] != '<' {
		return "", 0, ""
	}
	depth := 0
	for i := range len(p) {
		switch p[i] {
		case '<':
			depth++
		case '>':
			depth--
		}
		if depth == 0 {
			if i+1 >= len(p) {
				return "", 0, ""
			}
			return p[1:i], p[i+1], p[i+2:]
		}
	}
	return "", 0, ""
}

// typeArity returns what is left of a generated class name that counts: `1.
func typeArity(rest string) string {
	if n := strings.IndexByte(rest, '`'); n >= 0 {
		return rest[n:]
	}
	return ""
}

// split cuts a metadata name in front of each + and of the dot before the
// method, leaving what stands in angle brackets whole.
func split(name string) (parts []string) {
	depth, start, dot := 0, 0, -1
	for i := range len(name) {
		switch name[i] {
		case '<':
			depth++
		case '>':
			depth--
		case '+':
			if depth == 0 {
				parts = append(parts, name[start:i])
				start, dot = i, -1
			}
		case '.':
			// The last dot before a generated method, or the last of all:
			// "..ctor" has its name begin with one.
			if depth == 0 && i > start && name[i-1] != '.' {
				dot = i
			}
		}
	}
	if dot > start {
		parts = append(parts, name[start:dot])
		start = dot
	}
	return append(parts, name[start:])
}
