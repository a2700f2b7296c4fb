// Package memtest makes memories of processes, and cores of them, for tests.
//
// What is not put into a memory is missing from it. The type of an address is a
// parameter, so that tests inside of package arch, which has that type, can use
// these too; other tests write memtest.Pieces[arch.Addr].
package memtest

import "encoding/binary"

// A Memory is arch.Memory.
type Memory[A ~uint64] interface {
	Word(a A) (v uint64, ok bool)
	View(a A, n int) []byte
}

// A Piece is one piece of memory.
type Piece[A ~uint64] struct {
	At   A
	Data []byte
}

// View returns the n bytes at a, or nil if one of them is missing.
func (p Piece[A]) View(a A, n int) []byte {
	if off := uint64(a - p.At); n >= 0 && off <= uint64(len(p.Data)) && uint64(n) <= uint64(len(p.Data))-off {
		return p.Data[off:][:n:n]
	}
	return nil
}

// Word returns the 8 bytes at a.
func (p Piece[A]) Word(a A) (uint64, bool) { return word(p.View(a, 8)) }

func word(b []byte) (uint64, bool) {
	if b == nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// Pieces are a memory of several pieces. Where they overlap, the first one that has
// all bytes that are asked for answers.
type Pieces[A ~uint64] []Piece[A]

// Add puts the bytes b at a, behind the pieces that are there.
func (m *Pieces[A]) Add(a A, b []byte) { *m = append(*m, Piece[A]{a, b}) }

// Without returns m without the pieces that begin at a.
func (m Pieces[A]) Without(a A) (rest Pieces[A]) {
	for _, p := range m {
		if p.At != a {
			rest = append(rest, p)
		}
	}
	return rest
}

// View returns the n bytes at a, or nil if no piece has them all.
func (m Pieces[A]) View(a A, n int) []byte {
	for i := range m {
		if b := m[i].View(a, n); b != nil {
			return b
		}
	}
	return nil
}

// Word returns the 8 bytes at a.
func (m Pieces[A]) Word(a A) (uint64, bool) { return word(m.View(a, 8)) }

// A Sparse is a stack as a recording of a program has it: the words that were
// written, and zero for the others from Lo up to Hi. Under it lie the images.
type Sparse[A ~uint64] struct {
	Words  map[A]uint64
	Lo, Hi A
	Images Memory[A]
}

// Word returns the word at a, of the stack if it is there.
func (m *Sparse[A]) Word(a A) (uint64, bool) {
	if v, ok := m.Words[a]; ok || a-m.Lo < m.Hi-m.Lo {
		return v, true
	}
	return m.Images.Word(a)
}

// View returns bytes of the images.
func (m *Sparse[A]) View(a A, n int) []byte { return m.Images.View(a, n) }

// A Holed is a memory that lacks one aligned word and notes which words are read.
type Holed[A ~uint64] struct {
	Memory[A]
	Hole A          // 0: nothing is missing
	Read map[A]bool // the aligned words that were asked for; nil: they are not noted
}

// Word returns the word at a, unless a byte of it lies in the hole.
func (m *Holed[A]) Word(a A) (uint64, bool) {
	if m.touch(a, 8) {
		return 0, false
	}
	return m.Memory.Word(a)
}

// View returns the n bytes at a, unless one of them lies in the hole.
func (m *Holed[A]) View(a A, n int) []byte {
	if m.touch(a, n) {
		return nil
	}
	return m.Memory.View(a, n)
}

// touch notes a read and reports whether it meets the hole.
func (m *Holed[A]) touch(a A, n int) bool {
	if m.Read != nil {
		m.Read[a&^7] = true
	}
	return m.Hole != 0 && a < m.Hole+8 && m.Hole < a+A(n)
}
