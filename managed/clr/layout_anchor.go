package clr

import (
	"slices"

	"github.com/seamwalk/seam/arch"
	"github.com/seamwalk/seam/managed/code"
)

// The numbers of the entries of g_dacTable are those of the builds that a row was
// made from. Another build may have an entry more or less in front, so each number
// is anchored by what the entry must point at: the entries of a group, which lie
// close to each other, are taken as far away from their numbers as makes its check
// hold, and are not believed where none does.

// A variableGroup is a few variables whose entries lie close to each other.
type variableGroup struct {
	names []string
	check func(r *Runtime) bool // whether the globals of these names can be what they are
}

var variableGroups = []variableGroup{
	{[]string{codeRanges}, (*Runtime).leadsToCode},
	{[]string{"ThreadStore", "FinalizerThread", "GCThread"}, (*Runtime).leadsToThreads},
	{[]string{"AppDomain"}, (*Runtime).leadsToModules},
	{[]string{"ObjectMethodTable", "StringMethodTable", "ExceptionMethodTable", "FreeObjectMethodTable"}, (*Runtime).leadsToTypes},
}

// maxShift is how many entries more or fewer a build may have in front of one. From
// 8.0.0 to 8.0.31 it became two.
const maxShift = 16

// maxFrameShift is how many entries more or fewer a build may have between the
// vtables of other classes and those of Frames, beyond those in front of both.
const maxFrameShift = 3

// shifts are the distances from a number to try, the least first.
func shifts(yield func(by int) bool) {
	for d := 0; d <= maxShift; d++ {
		if !yield(d) || d > 0 && !yield(-d) {
			return
		}
	}
}

// anchor sets the globals of the runtime's contract that are in the table. Those
// that cannot be are left out. It needs the layouts of threads and of code.
func (t *variableTable) anchor() (lacks []string) {
	for _, g := range variableGroups {
		t.group(g)
	}
	if t.row.vtables != nil && !t.classes() {
		lacks = append(lacks, "Frame.Identifier")
	}
	return append(lacks, t.r.derive(t.own)...)
}

// group anchors the variables of g. One that the build's descriptor gives must be
// what the table has as well.
func (t *variableTable) group(g variableGroup) {
	globals := t.r.data.globals
	for by := range shifts {
		fits := true
		for _, name := range g.names {
			k, ok := t.row.entries[name]
			if !ok {
				continue
			}
			at, there := t.entry(int(k) + by)
			if given, ok := t.given(name); ok {
				fits = fits && there && at == given
			} else if globals[name] = (global{pointer: true}); there {
				globals[name] = global{value: uint64(at), pointer: true}
			}
		}
		if fits && g.check(t.r) {
			return
		}
	}
	for _, name := range g.names {
		if _, ok := t.given(name); !ok {
			delete(globals, name)
		}
	}
}

// given returns what the build's descriptor has for a variable.
func (t *variableTable) given(name string) (arch.Addr, bool) {
	if t.own == nil {
		return 0, false
	}
	return t.own.pointer(name)
}

// sampled is how many threads or sections say whether a list of them is the
// runtime's.
const sampled = 64

// leadsToCode reports whether the map of code has a section, and finds it again by
// an address in it.
func (r *Runtime) leadsToCode() (found bool) {
	r.ranges, _ = r.data.pointer(codeRanges)
	if r.ranges == 0 {
		return false
	}
	left := sampled // a dump may lack the way down to one of them
	r.sections(func(s rangeSection) bool {
		again, ok, _ := r.section(s.span.Lo)
		found = ok && s.span.Lo < s.span.Hi && again == s
		left--
		return !found && left > 0
	})
	return found
}

// leadsToThreads reports whether the list of threads begins with threads of the
// dump. Of the other two variables with a Thread it forgets what is none.
func (r *Runtime) leadsToThreads() bool {
	ts, _ := r.threadList(sampled)
	if !r.ofDump(func(i int) uint64 { return ts[i].OSID }, len(ts)) {
		return false
	}
	for _, name := range []string{"FinalizerThread", "GCThread"} {
		at, ok := r.data.pointer(name)
		v, there := r.word(at)
		if !ok || !there || v == 0 || len(ts) == sampled {
			continue
		}
		if !slices.ContainsFunc(ts, func(t code.Thread) bool { return t.Addr == arch.Addr(v) }) {
			delete(r.data.globals, name)
		}
	}
	return true
}

// leadsToModules reports whether the domain's list of assemblies has one whose Module
// leads back to it.
func (r *Runtime) leadsToModules() (found bool) {
	r.loadedModules(r.mem, func(_, item arch.Addr) bool {
		found = item != 0
		return !found
	})
	return found
}

// leadsToTypes reports whether strings and exceptions derive from objects. A free
// object's class derives from none.
func (r *Runtime) leadsToTypes() bool {
	mt := func(name string) (at arch.Addr, parent arch.Addr, ok bool) {
		variable, ok1 := r.data.pointer(name)
		v, ok2 := r.word(variable)
		p, ok3 := r.word(field(arch.Addr(v), r.names.MTParent))
		return arch.Addr(v), arch.Addr(p), ok1 && ok2 && ok3 && v != 0
	}
	object, none, ok1 := mt("ObjectMethodTable")
	_, a, ok2 := mt("StringMethodTable")
	_, b, ok3 := mt("ExceptionMethodTable")
	_, free, ok4 := mt("FreeObjectMethodTable")
	return ok1 && ok2 && ok3 && ok4 && none == 0 && free == 0 && a == object && b == object
}

// Classes whose vtables tell how far the entries of vtables are from their
// numbers: an object of each is found on another way. A RangeSection leads to its
// JIT manager, of which there is one for JIT-compiled code and one for ReadyToRun
// images, and a section of the latter to a Module.
const (
	jitManager  = "EEJitManager"
	r2rManager  = "ReadyToRunJitManager"
	moduleClass = "Module"
)

// classes anchors the vtables, and makes those of explicit Frames the identifiers
// of their classes. All objects that are found must agree; without any of them no
// vtable is believed. Another build may have an entry more between theirs and those
// of Frames, which are therefore held against the Frames of the process.
func (t *variableTable) classes() bool {
	by, found := 0, false
	agree := true
	see := func(class string, object arch.Addr) {
		v, ok := t.r.word(object) // an object begins with the address of its vtable
		number, named := t.row.vtables[class]
		if !ok || !named || object == 0 {
			return
		}
		k := t.number(arch.Addr(v))
		if d := k - int(number); k < 0 || found && d != by {
			agree = false
		} else {
			by, found = d, true
		}
	}
	seen := 0
	t.r.sections(func(s rangeSection) bool {
		switch {
		case s.r2r != 0:
			see(r2rManager, s.jit)
			see(moduleClass, s.r2r)
		case s.flags&rangeCodeHeap != 0:
			see(jitManager, s.jit)
		}
		seen++
		return seen < sampled && agree
	})
	if !agree || !found || by > maxShift || by < -maxShift {
		return false
	}
	for more := range shifts {
		if more > maxFrameShift || more < -maxFrameShift {
			break
		}
		if vtables, lost, ok := t.frameClasses(by + more); ok && t.held(vtables, more != 0) {
			t.r.framesLost = lost
			for name, v := range vtables {
				t.r.data.globals[name+"Identifier"] = global{value: uint64(v)}
			}
			return true
		}
	}
	return false
}
