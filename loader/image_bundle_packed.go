package loader

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/seamwalk/seam/internal/bin"
	"github.com/seamwalk/seam/internal/objfile"
)

// A program is the file that a process was started from, if it may be a bundle.
type program struct {
	image *Image // nil if it is not known

	once  bin.Once
	files map[string]*bundleFile // of its bundle, by name without folders
	taken atomic.Uint64          // bytes that they were unpacked to, or claimed
}

// Bounds on what is unpacked of one bundle. An assembly is a PE file, and those of
// the framework have 20 MB at most; deflate packs 1,032 bytes into one at best.
const (
	maxUnpacked    = 1 << 29 // bytes of one file
	maxUnpackedAll = 1 << 31 // of all together
	maxRatio       = 1032
)

// fromBundle unpacks the file of an image that was compressed in the bundle of the
// program: the runtime has unpacked it into memory of its own, so that no mapping
// leads to it (PEImageLayout, src/coreclr/vm/peimagelayout.cpp). It must be the
// same build, as any file.
func (s *source) fromBundle() bool {
	m := s.p.program.image
	if m == nil || m.src == nil || m.src == s || len(s.images) == 0 || m.src.open() == nil {
		return false
	}
	for _, o := range s.images {
		if o.Format != "pe" {
			return false
		}
	}
	f := s.p.program.bundled(m.src)[s.id.Name]
	if f == nil || f.packed == 0 {
		return false // one that is not compressed is mapped
	}
	data, err := f.unpack(m.src.bytes(), &s.p.program.taken)
	if err != nil {
		s.p.warnLate("bundle_broken", "%s in the bundle %s: %v", f.name, m.src.file, err)
		return false
	}
	why, sure := s.check(data, nil)
	if why != "" {
		s.refused = fmt.Sprintf("%s in the bundle %s is not the %s of the dump: %s", f.name, m.src.file, s.id.Name, why)
		return false
	}
	s.verified = sure
	s.take(candidate{m.src.file, data})
	return true
}

// bundled returns the files of the bundle that host is.
func (p *program) bundled(host *source) map[string]*bundleFile {
	p.once.Do(func() {
		p.files = map[string]*bundleFile{}
		files := bundleFiles(host.bytes(), host.progs())
		for i := range files {
			p.files[baseName(files[i].name)] = &files[i]
		}
	})
	return p.files
}

// bundledFile returns the bytes of a file in the bundle of the program, with the
// program's path; nil if it has none of that name.
func (p *Process) bundledFile(name string) (data []byte, path string) {
	m := p.program.image
	if m == nil || m.src == nil || m.src.open() == nil {
		return nil, ""
	}
	f := p.program.bundled(m.src)[name]
	switch {
	case f == nil:
		return nil, ""
	case f.packed == 0:
		return bin.Slice(m.src.bytes(), f.off, f.size), m.src.file
	}
	data, err := f.unpack(m.src.bytes(), &p.program.taken)
	if err != nil {
		p.warnLate("bundle_broken", "%s in the bundle %s: %v", f.name, m.src.file, err)
	}
	return data, m.src.file
}

// maxHead is how much is unpacked of a file for the sake of its headers, in bytes.
const maxHead = 1 << 12

// head returns the headers of a compressed PE file.
func (f *bundleFile) head(bundle []byte) (*objfile.PE, error) {
	b := bin.Slice(bundle, f.off, f.packed)
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxHead))
	if z, zerr := zlib.NewReader(bytes.NewReader(b)); err != nil && zerr == nil {
		data, _ = io.ReadAll(io.LimitReader(z, maxHead))
	}
	return objfile.ParsePE(data)
}

// unpack returns the file as it was before it was packed, out of the bundle's
// bytes, and counts its size in taken. .NET packs by deflate without a header; one
// of zlib's is known too.
func (f *bundleFile) unpack(bundle []byte, taken *atomic.Uint64) ([]byte, error) {
	b := bin.Slice(bundle, f.off, f.packed)
	switch {
	case b == nil:
		return nil, fmt.Errorf("its %d bytes at %#x are not all in the file", f.packed, f.off)
	case f.size > maxUnpacked:
		return nil, fmt.Errorf("it claims %d bytes, more than the limit of %d", f.size, maxUnpacked)
	case f.size/maxRatio > f.packed:
		return nil, fmt.Errorf("it claims %d bytes, more than deflate makes of %d", f.size, f.packed)
	case taken.Add(f.size) > maxUnpackedAll:
		return nil, fmt.Errorf("with its %d bytes more than the limit of %d would be unpacked of the bundle", f.size, maxUnpackedAll)
	}
	data, err := inflate(flate.NewReader(bytes.NewReader(b)), f.size)
	if err != nil {
		if z, zerr := zlib.NewReader(bytes.NewReader(b)); zerr == nil {
			data, err = inflate(z, f.size)
		}
	}
	return data, err
}

// errSize is the error of packed data that is longer than it should be.
var errSize = errors.New("its compressed data has more bytes than it claims")

// inflate reads size bytes, and fails if there are more or fewer.
func inflate(r io.Reader, size uint64) ([]byte, error) {
	var out bytes.Buffer // grows as bytes come, whatever is claimed
	n, err := io.Copy(&out, io.LimitReader(r, int64(size)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("its compressed data is broken: %w", err)
	case uint64(n) > size:
		return nil, errSize
	case uint64(n) < size:
		return nil, fmt.Errorf("its compressed data has %d bytes, and claims %d", n, size)
	}
	return out.Bytes(), nil
}
