package report

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// A jsonBuffer is JSON under way. Every method that takes a key writes one
// field; an empty string and the address 0 are null.
type jsonBuffer struct{ sink }

func (b *jsonBuffer) raw(s string) { b.buf = append(b.buf, s...) }

// key writes a key, with a comma in front unless it is its object's first.
func (b *jsonBuffer) key(k string) {
	end := len(b.buf) - 1
	for end >= 0 && (b.buf[end] == ' ' || b.buf[end] == '\n') {
		end--
	}
	if end >= 0 && b.buf[end] != '{' && b.buf[end] != ',' {
		b.raw(", ")
	}
	b.buf = append(append(append(b.buf, '"'), k...), `": `...)
}

// A front is what stands in front of the first object of a list, and of each
// other. An object with a line of its own can be compared with diff.
type front struct{ first, other string }

var (
	inline = front{"{", ", {"}
	line1  = front{"\n  {", ",\n  {"} // in the outermost list
	line2  = front{"\n    {", ",\n    {"}
	line3  = front{"\n      {", ",\n      {"}
)

// A jsonList is a list of objects under way.
type jsonList struct {
	b     *jsonBuffer
	front front
	any   bool // there is an object already
}

// list opens the field k, a list of objects.
func (b *jsonBuffer) list(k string, f front) jsonList {
	b.key(k)
	b.raw("[")
	return jsonList{b: b, front: f}
}

// open opens the next object. What was gathered may have been written since the
// last one, so key could not know that a comma is due.
func (l *jsonList) open() {
	if l.any {
		l.b.raw(l.front.other)
		return
	}
	l.any = true
	l.b.raw(l.front.first)
}

// close closes the object, and reports whether the writer takes another one.
func (l *jsonList) close() bool {
	l.b.raw("}")
	return l.b.more()
}

// end closes the list.
func (l *jsonList) end() { l.b.raw("]") }

// objects writes the field k, a list with an object for each of items; object
// writes the fields of one.
func objects[T any](b *jsonBuffer, k string, f front, items []T, object func(*T)) {
	l := b.list(k, f)
	for i := range items {
		l.open()
		object(&items[i])
		if !l.close() {
			break
		}
	}
	l.end()
}

// values writes the field k, a list with a value for each of items.
func values[T any](b *jsonBuffer, k string, items []T, value func(T)) {
	b.key(k)
	b.raw("[")
	for i, v := range items {
		if i > 0 {
			b.raw(", ")
		}
		value(v)
	}
	b.raw("]")
}

// object writes the field k, an object whose fields fields writes.
func (b *jsonBuffer) object(k string, fields func()) {
	b.key(k)
	b.raw("{")
	fields()
	b.raw("}")
}

// null writes the field k, of which nothing is known.
func (b *jsonBuffer) null(k string) {
	b.key(k)
	b.raw("null")
}

func (b *jsonBuffer) str(k, v string) { b.strIf(k, v, v != "") }

func (b *jsonBuffer) strIf(k, v string, known bool) {
	if !known {
		b.null(k)
		return
	}
	b.key(k)
	b.text(v)
}

// texts writes a list of texts.
func (b *jsonBuffer) texts(k string, list []string) {
	b.key(k)
	b.raw("[")
	for i, s := range list {
		if i > 0 {
			b.raw(", ")
		}
		b.text(s)
	}
	b.raw("]")
}

func (b *jsonBuffer) boolean(k string, v bool) { b.booleanIf(k, v, true) }

func (b *jsonBuffer) booleanIf(k string, v, known bool) {
	if !known {
		b.null(k)
		return
	}
	b.key(k)
	b.buf = strconv.AppendBool(b.buf, v)
}

func (b *jsonBuffer) num(k string, v int64) { b.numIf(k, v, true) }

func (b *jsonBuffer) numIf(k string, v int64, known bool) {
	if !known {
		b.null(k)
		return
	}
	b.key(k)
	b.buf = strconv.AppendInt(b.buf, v, 10)
}

func (b *jsonBuffer) addr(k string, v uint64) { b.addrIf(k, v, v != 0) }

// addrIf writes a number as text: 64 bits do not survive JavaScript.
func (b *jsonBuffer) addrIf(k string, v uint64, known bool) {
	if !known {
		b.null(k)
		return
	}
	b.key(k)
	// Addresses are a third of what is written, and strconv, which knows every
	// base, takes four times as long for one.
	const digits = "0123456789abcdef"
	var text [2*8 + 1]byte
	text[len(text)-1] = '"'
	i := len(text) - 2
	for text[i] = digits[v&15]; v > 15; text[i] = digits[v&15] {
		v >>= 4
		i--
	}
	b.buf = append(append(b.buf, `"0x`...), text[i:]...)
}

// text writes a string. Most need no escapes.
func (b *jsonBuffer) text(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			var out bytes.Buffer
			e := json.NewEncoder(&out)
			e.SetEscapeHTML(false) // List<int>, not List\u003cint\u003e
			e.Encode(s)            // of a string, to memory: cannot fail
			b.buf = append(b.buf, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
			return
		}
	}
	b.raw(`"`)
	b.raw(s)
	b.raw(`"`)
}
