package clr

import (
	"strings"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/internal/ecma"
	"github.com/seamwalk/seam/managed/code"
)

// The methods of Environment.FailFast, and the call of native code that the compiler
// of .NET 10 makes of the last of them.
const (
	failClass  = "System.Environment"
	failMethod = "FailFast"
	failFast   = failClass + "." + failMethod
	failCall   = failClass + ".<FailFast>g__"
)

// LastWords returns the message that was given to Environment.FailFast. Nothing
// keeps it in a place of its own. There are two ways to tell it for sure: the caller
// loads a literal right before the call; and the methods of FailFast, which hand the
// text of the String on to native code, hold the address of that text as well as the
// String, and of no other one both.
func (r *Runtime) LastWords(stack []code.Standing) (message string, asked, known bool) {
	n := 0
	for ; n < len(stack); n++ {
		m, _ := r.Describe(&stack[n].Code)
		if m.Name != failFast && !strings.HasPrefix(m.Name, failCall) {
			break
		}
	}
	if n == len(stack) {
		return "", n > 0, false
	}
	literal, isLiteral := r.literal(&stack[n])
	if n == 0 {
		return literal, isLiteral, isLiteral // .NET 8: FailFast itself is native code
	}
	pinned, isPinned := r.pinned(stack[0].SP, stack[n].SP)
	switch {
	case isLiteral && isPinned && literal != pinned:
		return "", true, false
	case isLiteral:
		return literal, true, true
	}
	return pinned, true, isPinned
}

// maxPinned bounds the part of a stack that is looked through, in bytes.
const maxPinned = 1 << 12

// pinned returns the text of the one String of which the stack from lo to hi has the
// object's address and the text's.
func (r *Runtime) pinned(lo, hi arch.Addr) (s string, ok bool) {
	if lo == 0 || hi <= lo || hi-lo > maxPinned || lo%8 != 0 {
		return "", false
	}
	words := map[arch.Addr]bool{}
	for a := lo; a < hi; a += 8 {
		v, ok := r.word(a)
		if !ok {
			return "", false
		}
		words[arch.Addr(v)] = true
	}
	var found arch.Addr
	for obj := range words {
		if obj == 0 || !words[field(obj, r.names.StringText)] {
			continue
		}
		if is, _ := r.isObject(obj); !is {
			return "", false // a String of which the dump lacks the bytes, perhaps
		}
		mt, _ := r.methodTable(obj)
		if name, err := r.TypeName(mt); err != nil || name != "System.String" || found != 0 {
			return "", false
		}
		found = obj
	}
	if found == 0 {
		return "", false
	}
	return r.text(found)
}

// literal returns the text that the method at f loads right before it calls
// FailFast, if that call is the one that f stands in: the first of the statement.
func (r *Runtime) literal(f *code.Standing) (s string, ok bool) {
	m, _ := r.Describe(&f.Code)
	if m.ModuleBase == 0 || m.Token == 0 {
		return "", false
	}
	at, size, err := ecma.Locate(r.mem, m.ModuleBase)
	if err != nil {
		return "", false
	}
	meta, err := ecma.Open(r.mem, at, size)
	if err != nil {
		return "", false
	}
	row, err := meta.Method(ecma.Token(m.Token).Row())
	if err != nil || row.RVA == 0 {
		return "", false
	}
	if at, err = ecma.Place(r.mem, m.ModuleBase, row.RVA); err != nil {
		return "", false
	}
	il, err := ecma.Body(r.mem, at)
	if err != nil {
		return "", false
	}
	list := ecma.Instructions(il)
	off, known := r.ILOffset(f.PC)
	k, ok := callAt(list, off, known)
	if !ok || list[k].Op != ecma.OpCall {
		return "", false
	}
	callee, err := meta.Called(list[k].Token())
	if err != nil || callee.Class != failClass || callee.Name != failMethod {
		return "", false
	}
	if k, ok = firstArgument(list, k, callee.Params); !ok || list[k].Op != ecma.OpLdstr {
		return "", false
	}
	s, err = meta.UserString(list[k].Token())
	return s, err == nil
}

// maxParams is how many parameters any FailFast has, that of the core library's own use
// included.
const maxParams = 3

// firstArgument returns the instruction that loads the first argument of the call
// list[call], if each argument is loaded by one instruction, right before it.
func firstArgument(list []ecma.Instruction, call, params int) (k int, ok bool) {
	if params < 1 || params > min(call, maxParams) {
		return 0, false
	}
	for i := call - params; i < call; i++ {
		if i > call-params && !list[i].Loads() || jumpsTo(list, list[i+1].At) {
			return 0, false
		}
	}
	return call - params, true
}

// callAt returns the call that code stands in whose IL offset is off: the first from
// there on. Where that is not known it is the only one of the method. Code of a
// method that was compiled into it stands in the call of that one.
func callAt(list []ecma.Instruction, off uint32, known bool) (k int, ok bool) {
	for i := range list {
		if !list[i].Calls() || known && list[i].At < off {
			continue
		}
		if ok {
			return 0, false
		}
		if k, ok = i, true; known {
			break
		}
	}
	return k, ok
}

// jumpsTo reports whether a branch leads to the instruction at at: what is on top
// of the evaluation stack there is then not what the one before has loaded.
func jumpsTo(list []ecma.Instruction, at uint32) bool {
	for i := range list {
		for _, to := range list[i].Jumps() {
			if to == at {
				return true
			}
		}
	}
	return false
}
