package loader

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxWalk bounds how many entries of a tree are looked at when a file does not
// lie where its identity says.
const maxWalk = 200_000

// A lazyFinder finds files one by one. Most searches end with the first, which
// is the right one; asking every place would be most of the system calls of a
// short run.
type lazyFinder interface {
	each(id ImageID, path string) iter.Seq[string]
}

// each yields the candidates that f finds, looking for each when it is its turn.
func each(f Finder, id ImageID, path string) iter.Seq[string] {
	if l, ok := f.(lazyFinder); ok {
		return l.each(id, path)
	}
	return slices.Values(f.Find(id, path))
}

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

func (f finders) Find(id ImageID, path string) []string { return slices.Collect(f.each(id, path)) }

func (f finders) each(id ImageID, path string) iter.Seq[string] {
	return f.all(func(g Finder) iter.Seq[string] { return each(g, id, path) })
}

// all yields what one finder after the other has.
func (f finders) all(of func(Finder) iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, g := range f {
			for p := range of(g) {
				if !yield(p) {
					return
				}
			}
		}
	}
}

type pathFinder struct{}

// PathFinder finds files where the dump says the process had them, portable PDBs
// beside their images, and separate files of debugging information where gdb does:
// by build-id in /usr/lib/debug, beside the image, in .debug beside it, and at its
// path in /usr/lib/debug.
func PathFinder() Finder { return pathFinder{} }

func (pathFinder) Find(id ImageID, path string) []string {
	if filepath.IsAbs(path) {
		return existing(path)
	}
	if b := id.BuildID; len(b) > 2 && path == "" {
		return existing(filepath.Join(debugFolder, ".build-id", b[:2], b[2:]+".debug"))
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
// size>/<name>, <name>/<GUID>FFFFFFFF/<name> for portable PDBs), any of them
// under "elf", "pe" or "pdb", the dump's own paths below
// the folder, or a plain tree of files, which is walked once when nothing lies
// where its identity says.
func DirFinder(dir string) Finder {
	return &dirFinder{dir: dir, roots: sync.OnceValue(func() []root {
		var out []root
		for _, d := range []string{dir, filepath.Join(dir, "elf"), filepath.Join(dir, "pe"), filepath.Join(dir, "pdb")} {
			if isDir(d) {
				out = append(out, root{d, isDir(filepath.Join(d, ".build-id"))})
			}
		}
		return out
	})}
}

type dirFinder struct {
	dir   string
	roots func() []root
	all   files // of the tree
	pdbs  files // of the tree, but for what is there by identity
}

// files are those of a plain tree.
type files struct {
	once   sync.Once
	byName map[string][]string // path by name, in lower case
}

// A root is a folder that identities are looked for in.
type root struct {
	dir     string
	buildID bool // it has a folder .build-id
}

func (d *dirFinder) Find(id ImageID, path string) []string {
	return slices.Collect(d.each(id, path))
}

func (d *dirFinder) each(id ImageID, path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var seen []string
		// take yields files that were not yielded yet, and reports whether
		// the search goes on.
		take := func(files []string) bool {
			for _, p := range files {
				if slices.Contains(seen, p) {
					continue
				}
				if seen = append(seen, p); !yield(p) {
					return false
				}
			}
			return true
		}
		for _, where := range []func(*root, ImageID, string) []string{(*root).exact, (*root).byBuildID} {
			for i := range d.roots() {
				if !take(where(&d.roots()[i], id, path)) {
					return
				}
			}
		}
		if len(seen) > 0 && path == "" {
			// A file of debugging information, of which there are few. An image is
			// looked for on: what has its build-id may be its debug file.
			return
		}
		if path != "" && !take(existing(filepath.Join(d.dir, filepath.FromSlash(filepath.Clean("/"+path))))) {
			return
		}
		list := &d.all
		if id.PDB != "" {
			list = &d.pdbs
		}
		list.once.Do(func() { list.walk(d.dir, id.PDB != "") })
		for _, n := range names(id, path) {
			if !take(list.byName[strings.ToLower(n)]) {
				return
			}
		}
	}
}

// exact returns the files of the name and identity.
func (r *root) exact(id ImageID, path string) (out []string) {
	for _, n := range names(id, path) {
		if b := id.BuildID; b != "" {
			out = append(out, existing(filepath.Join(r.dir, b, n))...)
		}
		if id.Timestamp != 0 || id.Size != 0 {
			// Symbol servers spell the size in lower case, and some trees
			// the timestamp too.
			upper, lower := fmt.Sprintf("%08X%x", id.Timestamp, id.Size), fmt.Sprintf("%08x%x", id.Timestamp, id.Size)
			if out = append(out, existing(filepath.Join(r.dir, n, upper, n))...); upper != lower {
				out = append(out, existing(filepath.Join(r.dir, n, lower, n))...)
			}
		}
		if id.PDB != "" {
			lower := strings.ToLower(n)
			for _, p := range []string{filepath.Join(n, id.PDB, n), filepath.Join(lower, strings.ToLower(id.PDB), lower)} {
				out = append(out, existing(filepath.Join(r.dir, p))...)
			}
		}
	}
	return out
}

// byBuildID returns the files of a build-id, whatever their name.
func (r *root) byBuildID(id ImageID, _ string) (out []string) {
	b := id.BuildID
	if len(b) <= 2 {
		return nil
	}
	if r.buildID {
		stem := filepath.Join(r.dir, ".build-id", b[:2], b[2:])
		out = append(existing(stem), existing(stem+".debug")...)
	}
	return append(out, only(filepath.Join(r.dir, b))...)
}

// walk lists the files of a tree by name. Symbolic links are not followed into
// folders, so that it ends. plain leaves out folders of files by identity: no PDB
// that is not found by its own lies there, nearly no process has all of its PDBs
// at hand, and such trees are large.
func (f *files) walk(dir string, plain bool) {
	f.byName = map[string][]string{}
	seen := 0
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; seen > maxWalk {
			return fs.SkipAll
		}
		if err != nil || plain && path != dir && e.IsDir() && identifies(e.Name()) {
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !e.IsDir() {
			n := strings.ToLower(e.Name())
			f.byName[n] = append(f.byName[n], path)
		}
		return nil
	})
}

// identifies reports whether a folder of the name has files by identity: it is
// called as a file is, in a symbol server's tree, or it is a build-id.
func identifies(folder string) bool {
	switch strings.ToLower(filepath.Ext(folder)) {
	case ".pdb", ".dll", ".exe", ".build-id":
		return true
	}
	_, err := hex.DecodeString(folder)
	return err == nil && len(folder) >= 32
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

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
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
