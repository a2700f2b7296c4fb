package ecma

import "strings"

// A Type is a type as a signature or the runtime has it. Shape says what Args are.
type Type struct {
	Shape Shape
	Rank  int    // of an Array
	Name  string // of a Named: Namespace.Outer+Inner`1, or a generic parameter's own
	Args  []Type
}

// A Shape is how a type is made from others.
type Shape uint8

const (
	Named    Shape = iota // a class, value type or generic parameter; Args are its generic arguments
	Vector                // a one-dimensional array from 0; Args[0] is its element
	Array                 // any other array
	Pointer               // Args[0] is what it points at
	ByRef                 // a managed reference to Args[0]
	Function              // a function pointer: Args[0] is what it returns, the rest its parameters
)

// maxText bounds the text of one type: generic arguments may repeat a long
// name many times over.
const maxText = 1 << 16

// String returns the type as Type.ToString of .NET spells it:
// System.Collections.Generic.Dictionary`2[System.String,System.Int32[]].
func (t Type) String() string {
	var b strings.Builder
	t.reflection(&b)
	return b.String()
}

func (t Type) reflection(b *strings.Builder) {
	if b.Len() > maxText {
		return
	}
	switch t.Shape {
	case Vector, Array, Pointer, ByRef:
		t.elem().reflection(b)
		b.WriteString(t.suffix(false))
	case Function:
		t.elem().reflection(b)
		b.WriteByte('(')
		t.list(b, 1, ", ", Type.reflection)
		b.WriteByte(')')
	default:
		b.WriteString(t.Name)
		if len(t.Args) > 0 {
			b.WriteByte('[')
			t.list(b, 0, ",", Type.reflection)
			b.WriteByte(']')
		}
	}
}

// CSharp returns the type as C# spells it, names in full:
// System.Collections.Generic.Dictionary<string, int[]>.
func (t Type) CSharp() string {
	var b strings.Builder
	t.csharp(&b)
	return b.String()
}

func (t Type) csharp(b *strings.Builder) {
	if b.Len() > maxText {
		return
	}
	switch t.Shape {
	case ByRef:
		b.WriteString("ref ")
		t.elem().csharp(b)
	case Pointer:
		t.elem().csharp(b)
		b.WriteByte('*')
	case Vector, Array:
		// C# writes the outermost rank first: int[][,] is a vector of
		// two-dimensional arrays.
		e := t
		for e.Shape == Vector || e.Shape == Array {
			e = e.elem()
		}
		e.csharp(b)
		for ; t.Shape == Vector || t.Shape == Array; t = t.elem() {
			b.WriteString(t.suffix(true))
		}
	case Function:
		b.WriteString("delegate*<")
		t.list(b, 1, ", ", Type.csharp)
		if len(t.Args) > 1 {
			b.WriteString(", ")
		}
		t.elem().csharp(b)
		b.WriteByte('>')
	default:
		t.name(b)
	}
}

// name writes a Named: generic arguments follow the part of a nested name that
// declares them, which the number behind its backtick says (Outer`1+Inner`1 has two).
func (t Type) name(b *strings.Builder) {
	if k, ok := keywords[t.Name]; ok && len(t.Args) == 0 {
		b.WriteString(k)
		return
	}
	if len(t.Args) == 1 && t.Name == "System.Nullable`1" {
		t.elem().csharp(b)
		b.WriteByte('?')
		return
	}
	used := 0
	for i, part := range strings.Split(t.Name, "+") {
		if i > 0 {
			b.WriteByte('.')
		}
		base, arity := splitArity(part)
		b.WriteString(base)
		if n := min(arity, len(t.Args)-used); n > 0 {
			b.WriteByte('<')
			Type{Args: t.Args[used : used+n]}.list(b, 0, ", ", Type.csharp)
			b.WriteByte('>')
			used += n
		}
	}
	if used < len(t.Args) { // the name does not count them, as in some obfuscated code
		b.WriteByte('<')
		Type{Args: t.Args[used:]}.list(b, 0, ", ", Type.csharp)
		b.WriteByte('>')
	}
}

// Arity returns how many generic arguments the type of this metadata name takes,
// those of the types that it is nested in among them: Outer`1+Inner`2 takes three.
func Arity(name string) (n int) {
	for _, part := range strings.Split(name, "+") {
		_, k := splitArity(part)
		n += k
	}
	return n
}

// splitArity splits a metadata name into what C# calls the type and how many
// generic parameters it declares itself: List`1 is List with 1.
func splitArity(name string) (base string, n int) {
	i := strings.LastIndexByte(name, '`')
	if i < 0 || i == len(name)-1 {
		return name, 0
	}
	for _, c := range name[i+1:] {
		if c < '0' || c > '9' || n > 999 {
			return name, 0
		}
		n = 10*n + int(c-'0')
	}
	return name[:i], n
}

func (t Type) list(b *strings.Builder, from int, sep string, write func(Type, *strings.Builder)) {
	for i := from; i < len(t.Args); i++ {
		if i > from {
			b.WriteString(sep)
		}
		write(t.Args[i], b)
	}
}

// elem returns the first argument: the element, or what a function returns.
func (t Type) elem() Type {
	if len(t.Args) == 0 {
		return unknown
	}
	return t.Args[0]
}

// suffix returns what stands behind the element type.
func (t Type) suffix(csharp bool) string {
	switch t.Shape {
	case Vector:
		return "[]"
	case Pointer:
		return "*"
	case ByRef:
		return "&"
	}
	if t.Rank <= 1 && !csharp {
		return "[*]"
	}
	return "[" + strings.Repeat(",", max(0, min(t.Rank, 32)-1)) + "]"
}

// keywords are the names that C# has for types of the core library.
var keywords = map[string]string{
	"System.Void": "void", "System.Boolean": "bool", "System.Char": "char",
	"System.SByte": "sbyte", "System.Byte": "byte", "System.Int16": "short", "System.UInt16": "ushort",
	"System.Int32": "int", "System.UInt32": "uint", "System.Int64": "long", "System.UInt64": "ulong",
	"System.Single": "float", "System.Double": "double", "System.Decimal": "decimal",
	"System.String": "string", "System.Object": "object",
	"System.IntPtr": "nint", "System.UIntPtr": "nuint",
}
