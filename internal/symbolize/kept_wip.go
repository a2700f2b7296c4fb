package symbolize

import (
	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/loader"
)

type Symbol struct {
	At   arch.LinkAddr
	Size uint64
	Name string
}

func keptSymbols(img *loader.Image) []Symbol { return nil }
