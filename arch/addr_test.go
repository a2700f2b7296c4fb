package arch

import (
	"fmt"
	"testing"
)

// A range in a message is readable: not "{0x1000 0x2000}".
func TestSpanText(t *testing.T) {
	if s := fmt.Sprintf("%v", Span{Lo: 0x1000, Hi: 0x2000}); s != "0x1000-0x2000" {
		t.Error(s)
	}
}
