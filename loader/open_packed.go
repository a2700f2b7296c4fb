package loader

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// A packing is a compression a dump can come in.
type packing struct {
	name   string
	magic  string
	reader func(io.Reader) (io.Reader, func(), error)
}

var packings = []packing{
	{"zstd", "\x28\xb5\x2f\xfd", func(r io.Reader) (io.Reader, func(), error) {
		// Large dumps are packed with zstd --long=31, whose window of 2 GiB
		// most decoders refuse. The decoder reserves the window a frame
		// claims, but the pages cost memory only as they are written to.
		d, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(1<<31),
			zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, err
		}
		return d, d.Close, nil
	}},
	{"gzip", "\x1f\x8b", func(r io.Reader) (io.Reader, func(), error) {
		g, err := gzip.NewReader(r)
		return g, func() {}, err
	}},
}

// mapDump maps the dump at path, unpacking it if need be. A packed dump that
// is cut or damaged gives what came before, and damage says so.
func mapDump(path string, o *Options) (data []byte, damage, err error) {
	f := os.Stdin
	if path != "-" {
		if f, err = os.Open(path); err != nil {
			return nil, nil, err
		}
		defer f.Close()
	}
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if st.IsDir() {
		return nil, nil, fmt.Errorf("%s: is a folder, not a dump", path)
	}
	if st.Mode().IsRegular() {
		// Standard input may be a file too, read from its start only.
		var head [4]byte
		n, _ := f.ReadAt(head[:], 0)
		if packingOf(head[:n]) == nil {
			data, err = o.held.open(f, st, st.Size())
			return data, nil, err
		}
	}
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	k := packingOf(head)
	if k == nil {
		return unpack(path, in, o)
	}
	r, done, err := k.reader(in)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, k.damage(err))
	}
	defer done()
	return unpack(path, packedReader{r, k}, o)
}

// damage returns the error err, with which unpacking ended, with the name of the
// packing, so that nobody looks for the fault in the dump.
func (k *packing) damage(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("the dump is packed with %s and cut: its packed bytes end too early (%w)", k.name, err)
	}
	return fmt.Errorf("the dump is packed with %s and damaged: %w", k.name, err)
}

// A packedReader reads a packed dump; its errors name the packing.
type packedReader struct {
	io.Reader
	k *packing
}

func (r packedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = r.k.damage(err)
	}
	return n, err
}

func packingOf(head []byte) *packing {
	for i := range packings {
		if bytes.HasPrefix(head, []byte(packings[i].magic)) {
			return &packings[i]
		}
	}
	return nil
}

// unpack copies src to memory, or to a temporary file that has no name, and maps
// it.
func unpack(path string, src io.Reader, o *Options) (data []byte, damage, err error) {
	limit := o.Limits.Unpacked
	if o.InMemory {
		limit = min(limit, o.Limits.InMemory)
		data, damage = io.ReadAll(io.LimitReader(src, limit+1))
		if int64(len(data)) > limit {
			return nil, nil, fmt.Errorf("%s: unpacks to more than %d bytes", path, limit)
		}
		if damage != nil && len(data) == 0 {
			return nil, nil, fmt.Errorf("%s: %w", path, damage)
		}
		return data, damage, nil
	}
	tmp, err := os.CreateTemp("", "seam-*.core")
	if err != nil {
		return nil, nil, err
	}
	defer tmp.Close()
	// A name is needed where an open file cannot be removed; there it goes on Close.
	if os.Remove(tmp.Name()) != nil {
		o.held.onClose(func() error { return os.Remove(tmp.Name()) })
	}
	n, damage := copySparse(tmp, io.LimitReader(src, limit+1))
	if damage == nil && n > limit {
		damage, n = fmt.Errorf("unpacks to more than %d bytes", limit), 0
	}
	if damage != nil && n == 0 {
		return nil, nil, fmt.Errorf("%s: %w", path, damage)
	}
	if data, err = o.held.open(tmp, nil, n); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, damage, nil
}

// copySparse copies src to f, leaving holes where it is zero: dumps of
// processes that reserve much are mostly holes.
func copySparse(f *os.File, src io.Reader) (n int64, err error) {
	buf := make([]byte, 1<<16)
	var zero [1 << 16]byte
	for {
		k, rerr := readBlock(src, buf)
		if k > 0 && !bytes.Equal(buf[:k], zero[:k]) {
			if _, err := f.WriteAt(buf[:k], n); err != nil {
				return 0, err
			}
		}
		n += int64(k)
		if rerr != nil {
			if terr := f.Truncate(n); terr != nil {
				return 0, terr
			}
			if rerr == io.EOF {
				return n, nil
			}
			return n, rerr
		}
	}
}

// readBlock fills buf as far as src goes. It is io.ReadFull with another
// answer to an end within the block: that is io.EOF, as anywhere, while
// io.ErrUnexpectedEOF is then a decoder's own word for a stream that was cut.
func readBlock(src io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = src.Read(buf[n:])
		n += k
	}
	return n, err
}
