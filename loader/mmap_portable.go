//go:build !unix

package loader

import (
	"fmt"
	"io"
	"os"
)

// mapFile reads the first size bytes of f where files are not mapped.
func mapFile(f *os.File, size int64) ([]byte, func() error, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return data, nil, nil
}

func empty([]byte) error { return nil }

func release([]byte) {}
