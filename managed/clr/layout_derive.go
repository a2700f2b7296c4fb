package clr

import "github.com/seamwalk/seam/arch"

// Two offsets lie behind so much else that a servicing build may have them
// elsewhere, and can be told from what lies there: where a Module has its
// ReadyToRunInfo, and where that has its map of entry points. A row's offset is held
// against the images of the process, and searched for where they do not confirm it.

// Bounds of the search: how far into a structure, and in how many images.
const (
	maxModule   = 2048 // sizeof(Module) is 1,200 in .NET 9
	maxR2RInfo  = 1024 // sizeof(ReadyToRunInfo) is about 500
	maxSampled  = 8    // images
	maxSeenKeys = 64   // buckets of a map of entry points
)

// A verdict says what an image's bytes say of an offset.
type verdict uint8

const (
	unknown   verdict = iota // the dump lacks what would tell
	confirmed                // what lies there is what must be
	refuted                  // and cannot be
)

// derive checks the offsets that the build's own descriptor, which may be nil, does
// not give. lacks are those that cannot be right, and lie nowhere else.
func (r *Runtime) derive(own *contract) (lacks []string) {
	var modules []rangeSection
	r.sections(func(s rangeSection) bool {
		if s.r2r != 0 {
			modules = append(modules, s)
		}
		return len(modules) < maxSampled
	})
	l := &r.codeLayout
	for _, d := range []struct {
		name string
		at   *int
		end  int
		fits func(s rangeSection, at int) verdict
	}{
		{"Module.ReadyToRunInfo", &l.ModuleR2R, maxModule, r.infoFits},
		{"ReadyToRunInfo.EntryPointToMethodDescMap", &l.R2REntries, maxR2RInfo, r.entriesFit},
	} {
		if own != nil {
			if _, ok := own.offsets[d.name]; ok {
				continue
			}
		}
		was := offsetOf(modules, *d.at, d.fits)
		if was == confirmed {
			continue
		}
		places, found := 0, nowhere
		for at := 0; at < d.end; at += r.arch.Word {
			if offsetOf(modules, at, d.fits) == confirmed {
				found = at
				places++
			}
		}
		switch {
		case places == 1:
			*d.at = found
		case was == refuted:
			*d.at = nowhere
			lacks = append(lacks, d.name)
		}
	}
	return lacks
}

// offsetOf asks all images for an offset: most of those that can tell settle it. One
// may have been stopped in the midst of being loaded.
func offsetOf(images []rangeSection, at int, fits func(s rangeSection, at int) verdict) verdict {
	var n [refuted + 1]int
	for _, s := range images {
		n[fits(s, at)]++
	}
	switch {
	case n[confirmed] > n[refuted]:
		return confirmed
	case n[refuted] > 0:
		return refuted
	}
	return unknown
}

// infoFits reports whether the Module of an image has its ReadyToRunInfo at an
// offset: that leads back to the Module, and to the image's header.
func (r *Runtime) infoFits(s rangeSection, at int) verdict {
	v, ok := r.word(field(s.r2r, at))
	if !ok {
		return unknown
	}
	info := arch.Addr(v)
	// It does not lie in the Module, in front of the word that leads to it.
	if at := field(s.r2r, at); info == 0 || info%arch.Addr(r.arch.Word) != 0 || at-info < maxR2RInfo {
		return refuted
	}
	x, ok := r.r2rImage(info)
	if !ok {
		return unknown
	}
	if x.module != s.r2r || !s.span.Has(x.header) || !s.span.Has(x.funcs) {
		return refuted
	}
	if b := r.linked(x.header, 4); b != nil && le32(b) != r2rSignature {
		return refuted
	}
	return confirmed
}

// entriesFit reports whether an image's ReadyToRunInfo, or that of the composite
// image which it is a part of, has its map of entry points at an offset: the keys
// there are addresses of the image's code.
func (r *Runtime) entriesFit(s rangeSection, at int) verdict {
	l := &r.codeLayout
	info, ok := r.word(field(s.r2r, l.ModuleR2R))
	if !ok {
		return unknown
	}
	x, ok := r.r2rImage(arch.Addr(info))
	if !ok {
		return unknown
	}
	buckets, ok := r.word(field(x.whole, at+l.HashBuckets))
	if !ok {
		return unknown
	}
	n, ok := r.u32(arch.Addr(buckets))
	switch {
	case buckets == 0 || buckets%uint64(r.arch.Word) != 0:
		return refuted
	case !ok:
		return unknown
	case n < 2 || n > maxRows:
		return refuted
	}
	found := unknown
	for i := range arch.Addr(min(n, maxSeenKeys)) {
		b := arch.Addr(buckets) + arch.Addr(l.BucketSize)*(1+i)
		for slot := range arch.Addr(4) {
			k, ok := r.word(b + arch.Addr(l.BucketKeys) + 8*slot)
			switch {
			case !ok || k <= emptyKeys:
			case !s.span.Has(arch.Addr(k)):
				return refuted
			default:
				found = confirmed
			}
		}
	}
	return found
}

// emptyKeys are the keys of slots that have none, or have one no more
// (src/coreclr/vm/hash.h, EMPTY and DELETED).
const emptyKeys = 1
