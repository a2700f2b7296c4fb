package symbolize

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// maxDemangled is the power of two that bounds a demangled name: a short
// mangled name can stand for one of any length.
const maxDemangled = 13

// Demangle returns a symbol's name for eyes: C++ and Rust names in the source's
// spelling, without parameters, which make most of such a name's length, and
// without the version of a symbol of glibc. Other names, those that only look
// like a mangled type among them, stay as they are: createdump's report has
// "long long int::*" for a C function called Mix.
func Demangle(symbol string) string {
	base, _, versioned := strings.Cut(symbol, "@")
	if versioned && strings.HasSuffix(symbol, "@plt") {
		return Demangle(base) + "@plt"
	}
	if !strings.HasPrefix(base, "_Z") && !strings.HasPrefix(base, "_R") {
		return base
	}
	return demangle.Filter(base, demangle.NoParams, demangle.MaxLength(maxDemangled))
}
