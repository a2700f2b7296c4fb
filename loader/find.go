package loader

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxWalk bounds how many entries of a tree are looked at when a file does not
// lie where its identity says.
const maxWalk = 200_000

type finders []Finder

// MultiFinder asks each finder in turn. Finders that are nil are left out.
func MultiFinder(fs ...Finder) Finder {
	var out finders
	for _, f := range fs {
		if f != nil {
			out = append(out, f)
		}
	}
	return out
}

func (f finders) Find(id ImageID, path string) []string {
	var out []string
	for _, g := range f {
		out = append(out, g.Find(id, path)...)
	}
	return out
}

type pathFinder struct{}

// PathFinder finds files where the dump says the process had them, and
// separate debugging information where distributions put it.
func PathFinder() Finder { return pathFinder{} }

func (pathFinder) Find(id ImageID, path string) []string {
	if filepath.IsAbs(path) {
		return existing(path)
	}
	if b := id.BuildID; len(b) > 2 && path == "" {
		return existing("/usr/lib/debug/.build-id/" + b[:2] + "/" + b[2:] + ".debug")
	}
	return nil
}

// BesideFinder finds files by name in the folder of the dump.
func BesideFinder(dump string) Finder { return besideFinder(filepath.Dir(dump)) }

type besideFinder string

func (d besideFinder) Find(id ImageID, path string) []string {
	var out []string
	for _, n := range names(id, path) {
		out = append(out, existing(filepath.Join(string(d), n))...)
	}
	return out
}

// DirFinder finds files in a folder: a build-id tree (<build-id>/<name> or
// .build-id/xx/yyyy.debug), a symbol-server tree (<name>/<timestamp and
// size>/<name>), either of them under "elf" or "pe", the dump's own paths below
// the folder, or a plain tree of files, which is walked once when nothing lies
// where its identity says.
func DirFinder(dir string) Finder { return &dirFinder{dir: dir} }

type dirFinder struct {
	dir  string
	once sync.Once
	tree map[string][]string // path by name, in lower case
}

func (d *dirFinder) Find(id ImageID, path string) []string {
	var out []string
	for _, root := range []string{d.dir, filepath.Join(d.dir, "elf"), filepath.Join(d.dir, "pe")} {
		for _, n := range names(id, path) {
			if b := id.BuildID; b != "" {
				out = append(out, existing(filepath.Join(root, b, n))...)
			}
			if id.Timestamp != 0 || id.Size != 0 {
				// Symbol servers spell the size in lower case, and some trees
				// the timestamp too.
				for _, key := range []string{fmt.Sprintf("%08X%x", id.Timestamp, id.Size), fmt.Sprintf("%08x%x", id.Timestamp, id.Size)} {
					out = append(out, existing(filepath.Join(root, n, key, n))...)
				}
			}
		}
		if b := id.BuildID; len(b) > 2 {
			stem := filepath.Join(root, ".build-id", b[:2], b[2:])
			out = append(out, existing(stem)...)
			out = append(out, existing(stem+".debug")...)
			out = append(out, only(filepath.Join(root, b))...) // under another name
		}
	}
	if len(out) > 0 {
		return unique(out)
	}
	if path != "" {
		out = existing(filepath.Join(d.dir, filepath.FromSlash(filepath.Clean("/"+path))))
	}
	d.once.Do(d.walk)
	for _, n := range names(id, path) {
		out = append(out, d.tree[strings.ToLower(n)]...)
	}
	return out
}

// unique returns list without what it has twice, in its order.
func unique(list []string) []string {
	var out []string
	for _, p := range list {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// walk lists the files of the tree by name. Symbolic links are not followed
// into folders, so that it ends.
func (d *dirFinder) walk() {
	d.tree = map[string][]string{}
	seen := 0
	filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; seen > maxWalk {
			return fs.SkipAll
		}
		if err != nil {
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !e.IsDir() {
			n := strings.ToLower(e.Name())
			d.tree[n] = append(d.tree[n], path)
		}
		return nil
	})
}

// names returns the names a file may go by: the image's, and the last part of
// its path, which differ for a library that was renamed.
func names(id ImageID, path string) []string {
	var out []string
	for _, n := range []string{id.Name, baseName(path)} {
		if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\\\x00") || len(out) > 0 && out[0] == n {
			continue
		}
		out = append(out, n)
	}
	return out
}

// existing returns path if a file is there.
func existing(path string) []string {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	return []string{path}
}

// only returns the files of a folder that holds few, as <build-id> folders do.
func only(dir string) []string {
	es, err := os.ReadDir(dir)
	if err != nil || len(es) > 16 {
		return nil
	}
	var out []string
	for _, e := range es {
		if e.Type().IsRegular() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out
}
