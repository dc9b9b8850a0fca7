package policy

import (
	"slices"
	"testing"
)

// fuzzPlaces are few, so that rules overlap.
var fuzzPlaces = []string{
	"/**", "/a/**", "/a/b/**", "/a/b/c", "/a/f", "/lib/x/**", "/usr/**", "/tmp/**", "/tmp/d/**", "/tmp/d/e/**",
	"/workspace/**", "/workspace/a/**", "/workspace/a/b/**", "/workspace/a/f", "/home/**", "/usr/bin/node/**", "/dev/**", "/*/x",
}

var fuzzOps = [][]Operation{
	nil, writing, ops("execute"), ops("read readdir"), ops("chmod"), ops("rename"), ops("read"),
	ops("rm write rename truncate create_dir symlink"), ops("stat readlink"), ops("read write truncate"),
	ops("write create_dir rm rename symlink chmod truncate execute"), ops("read readdir execute"),
}

// bytesOf reads choices from the fuzzer's bytes: 0 after the last one.
type bytesOf []byte

func (b *bytesOf) pick(n int) int {
	if len(*b) == 0 {
		return 0
	}
	v := int((*b)[0]) % n
	*b = (*b)[1:]
	return v
}

func (b *bytesOf) scope(info *scopeInfo) Scope {
	s := Scope{Default: []Mode{Deny, Allow}[b.pick(2)]}
	for range b.pick(6) {
		r := Rule{Mode: []Mode{Allow, Deny}[b.pick(2)]}
		text := []string{fuzzPlaces[b.pick(len(fuzzPlaces))]}
		if info.name == FS {
			r.Operations, r.Paths = fuzzOps[b.pick(len(fuzzOps))], text
		} else {
			r.Patterns = text
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

func (b *bytesOf) permissions() Permissions {
	p := Permissions{FS: b.scope(scopeNamed(FS))}
	if b.pick(3) == 1 {
		p.ChildProcess = b.scope(scopeNamed(ChildProcess))
	}
	return p.Over(Default())
}

func FuzzLower(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 1, 10, 0, 0, 11, 1})
	f.Add([]byte{0, 3, 0, 0, 3, 0, 10, 0, 1, 12, 1, 1, 0, 1, 0, 6})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytesOf(data)
		p := b.permissions()
		plan, err := Lower(p, world)
		if err == nil {
			compare(t, p, plan, nil)
		}
	})
}

func FuzzLowerRun(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 1, 2, 1, 10, 0, 0, 11, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bytesOf(data)
		outer, inner := b.permissions(), b.permissions()
		jail, err := Lower(outer, world)
		if err != nil {
			return
		}
		if plan, err := LowerRun(outer, inner, world); err == nil {
			compare(t, inner, plan, jail)
		}
	})
}

// compare checks, at every place near the rules, that the plan makes the kernel decide as
// Decide does. jail is the runtime's plan when lowering a run.
func compare(t *testing.T, p Permissions, plan, jail *Plan) {
	t.Helper()
	var samples []Place
	for _, text := range fuzzPlaces {
		place, _ := placeOf(text)
		samples = append(samples, place)
	}
	for _, n := range newTree(append(samples, tree("/home/node"), tree("/etc"), tree("/workspace/z"))) {
		allowed, held := allowedAt(p, n.place), enforced(plan, n.place)
		if !n.place.Tree {
			allowed, held = allowed&^folderSet, held&^folderSet
		}
		if plan.Spawn.Only != nil && !insideAny(plan.Spawn.Only, n.place) {
			allowed &^= executeSet
		}
		if jail == nil && allowed == 0 && !plan.Hides(n.place) && !near(n.place) {
			t.Fatalf("%+v\n%+v\n%s: nothing is allowed, but it is visible", p, plan, n.place)
		}
		unlisted := n.place.Tree && allowed&listSet == 0 && !plan.Hides(n.place)
		if unlisted && !plan.NoWatch && newLowering(Permissions{}, world).writable(n.place.Path) {
			t.Fatalf("%+v\n%+v\n%s: it can be watched, though not listed", p, plan, n.place)
		}
		if more := held &^ allowed &^ statSet &^ needAt(n.place, allowed); more != 0 {
			t.Fatalf("%+v\n%+v\n%s: %s held, though denied", p, plan, n.place, more)
		}
		if !ownsFiles(plan, n.place, held) {
			allowed &^= chmodSet // there is nothing to change
		}
		if less := allowed &^ held; less != 0 {
			t.Fatalf("%+v\n%+v\n%s: %s denied, though allowed", p, plan, n.place, less)
		}
	}
}

// near reports whether a place is in a need.
func near(p Place) bool {
	return slices.ContainsFunc(world.Needed, func(n Need) bool { return n.place().contains(p) })
}

// needAt returns the operations that may be granted at a place although no rule allows
// them.
func needAt(p Place, allowed opSet) opSet {
	switch {
	case !near(p):
		return 0
	case allowed == 0:
		return ^opSet(0) // shown inside a hidden place, with the operations of its parent
	}
	return newLowering(Permissions{}, world).needed(p)
}

// enforced returns the operations that the plan leaves to a guest at a place.
func enforced(plan *Plan, at Place) opSet {
	if plan.Hides(at) {
		return 0
	}
	set := landlockSet
	if plan.Restricts {
		set = 0
		for _, g := range plan.Grants {
			if g.Place.contains(at) {
				set |= setOf(g.Operations...)
			}
		}
	}
	if insideAny(plan.ReadOnly, at) {
		set &^= writingSet
	}
	if insideAny(plan.NoExec, at) {
		set &^= executeSet
	}
	set &^= renameSet // Landlock checks only the rights to remove and create for a rename within a folder
	if !plan.NoRename && set.canRename() {
		set |= renameSet
	}
	if !plan.NoMetadata && !insideAny(plan.ReadOnly, at) && ownsFiles(plan, at, set) {
		set |= chmodSet
	}
	return set | statSet
}

// ownsFiles reports whether the guest may own files at a place.
func ownsFiles(plan *Plan, at Place, set opSet) bool {
	l := newLowering(Permissions{}, world)
	if f := l.ownerOf(at); f != "" && !slices.Contains(plan.Sealed, f) {
		return true
	}
	return l.writable(at.Path) && set&writingSet != 0
}
