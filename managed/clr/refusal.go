package clr

import (
	"fmt"
	"slices"

	"github.com/seamwalk/seam/loader"
)

// refusal says why the runtime in img is not read, nil if there is none in it.
// unread is what was wrong with its descriptor, if it has one.
func refusal(img *loader.Image, unread error) error {
	if unread != nil || !slices.Contains(runtimeFiles, img.ID.Name) {
		return unread
	}
	_, _, exports := img.Lookup(dacTableSymbol)
	if _, _, has := img.Lookup(descriptorSymbol); exports && !has {
		return fmt.Errorf("it exports no contract descriptor, and is none of .NET 8: older ones are not read")
	}
	return fmt.Errorf("it has no contract descriptor at hand (%s); --images with a folder that holds this file would supply it", buildName(&img.ID))
}
