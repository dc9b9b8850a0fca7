package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// inRuntime ends the reason of errors about permissions that a runtime can have and a run
// cannot.
const inRuntime = ": this belongs in the runtime's own permissions"

// node is a place that a rule, a need or a folder of the world names. Its permissions
// apply to everything below it that no deeper node names.
type node struct {
	place  Place
	parent int // index of the nearest enclosing node; -1 for "/"

	// Set by nodes.
	allowed opSet // by the rules of fs and childProcess
	granted opSet // allowed, or needed by Node

	// Set when the node has been lowered.
	inherited                opSet // Landlock's grants here and above; includes chmod, which Landlock does not restrict
	hidden, readOnly, noExec bool
}

// fs lowers fs to grants and mounts, from "/" down.
func (l *lowering) fs() {
	l.checkNeeds()
	nodes := l.fsNodes()
	l.checkNodes(nodes)
	l.lowerNodes(nodes)
	if len(l.errs) > 0 {
		return // later steps would report the same rules for other reasons
	}
	l.lowerChmod(nodes)
	l.lowerRename(nodes)
	// inotify is refused everywhere if the guest can see, but not list, a folder in which others may create files.
	l.plan.NoWatch = slices.ContainsFunc(nodes, func(n node) bool {
		return n.place.Tree && !n.hidden && n.allowed&listSet == 0 && l.writable(n.place.Path)
	})
	if l.outer == nil {
		l.seal(nodes)
		l.pin(nodes)
	}
}

// lowerNodes adds each node's grants and mounts to the plan.
func (l *lowering) lowerNodes(nodes []node) {
	for i := range nodes {
		n := &nodes[i]
		var up node
		if n.parent >= 0 {
			up = nodes[n.parent]
		}
		if l.outer == nil {
			l.mount(n, up)
		} else {
			l.useRuntimeMounts(n, up)
		}
		if g := n.granted &^ up.inherited & landlockSet; g != 0 {
			l.plan.Grants = append(l.plan.Grants, Grant{n.place, g.list()})
		}
		n.inherited = up.inherited | n.granted
	}
	if nodes[0].inherited&landlockSet == landlockSet {
		l.plan.Grants = nil // "/" grants everything: mounts enforce the rest
	} else {
		l.plan.Restricts = true
	}
}

// fsNodes returns a node for each place that the rules or the world name, and for each
// listed program, because only these are granted execute.
func (l *lowering) fsNodes() []node {
	places := slices.Concat(l.p.places(FS), folderPlaces(l.w.Own, l.w.Shared), l.plan.Spawn.Only)
	if l.outer != nil {
		places = append(places, l.outerPermissions.places(FS)...)
	}
	for _, n := range l.w.Needed {
		places = append(places, n.place())
	}
	nodes := newTree(places)
	for i := range nodes {
		n := &nodes[i]
		n.allowed = allowedAt(l.p, n.place)
		if l.plan.Spawn.Only != nil && !l.spawns(n.place) {
			n.allowed &^= executeSet
		}
		n.granted = n.allowed | l.needed(n.place)
	}
	return nodes
}

func (n Need) place() Place { return Place{Path: n.Path, Tree: n.Tree} }

// needs reports whether Node needs the place. It does not need files below the guest's own
// folders, even where these lie inside a needed folder: libraries belong to the image.
func (l *lowering) needs(n Need, at Place) bool {
	isOwn := func(f string) bool { return f != n.Path && within(n.Path, f) && within(f, at.Path) }
	return n.place().contains(at) && !slices.ContainsFunc(slices.Concat(l.w.Own, l.w.Shared), isOwn)
}

// allowedAt returns the fs operations that p allows at a place.
func allowedAt(p Permissions, at Place) opSet {
	sample := at.sample()
	return setWhere(func(op Operation) bool { return p.Decide(FS, op, sample).Allowed })
}

// needed returns the operations that Node needs at a place. With a list of programs, only
// loaders need execute.
func (l *lowering) needed(p Place) opSet {
	var set opSet
	for _, n := range l.w.Needed {
		if !l.needs(n, p) {
			continue
		}
		ops := setOf(n.Operations...) | statSet
		if l.plan.Spawn.Only != nil && !n.Loader {
			ops &^= executeSet
		}
		set |= ops
	}
	return set
}

// checkNeeds rejects rules that name a path that Node needs and deny it. A broader rule, such as
// /usr/**, leaves the need granted.
func (l *lowering) checkNeeds() {
	for _, e := range l.p.entries(FS) {
		p, _ := placeOf(e.text)
		for _, n := range l.w.Needed {
			if (p.Path == n.Path || l.needs(n, p)) && l.deniesNeed(e, p, n) {
				l.reject(entryError(e, "Node itself needs it: "+n.Reason, "leave it out"))
			}
		}
	}
}

func (l *lowering) deniesNeed(e entry, p Place, n Need) bool {
	return slices.ContainsFunc((setOf(n.Operations...) | statSet).list(), func(op Operation) bool {
		d := l.p.Decide(FS, op, p.sample())
		return !d.Allowed && d.Rule == e.rule
	})
}

// The functions below enforce for the whole guest, or reject, operations that Landlock cannot enforce
// for each place.

// checkNodes rejects, at each place, operations on single files that Landlock checks on the folder, and single
// files that contain other places; rules that deny stat or readlink where another operation is allowed; and rules that
// deny what Node needs in a folder of the guest: files that the guest creates there would be granted it too.
func (l *lowering) checkNodes(nodes []node) {
	for i, n := range nodes {
		tree := Place{Path: n.place.Path, Tree: true}
		if !n.place.Tree {
			l.refuse(n, n.allowed&^nodes[n.parent].allowed&folderSet,
				"%s: checked on the folder, and this is one file", tree.String()+", or operations without %s")
			inside := func(m node) bool { return m.place != n.place && tree.contains(m.place) }
			if slices.ContainsFunc(nodes[i:], inside) || nodes[n.parent].place == tree {
				l.rejectFolder(n.place, tree)
			}
		}
		l.refuse(n, (statSet &^ n.allowed).when(n.allowed != 0),
			"the kernel lacks a hook for %s where something else is allowed", "deny everything there")
		own := n.place == tree && slices.Contains(slices.Concat(l.w.Own, l.w.Shared), n.place.Path)
		l.refuse(n, (n.granted &^ n.allowed &^ statSet).when(own && n.granted&writingSet != 0),
			"Node itself needs %s there, and the folder is the guest's own", "another working directory")
	}
}

// refuse rejects the rule that decides operations at a node, if there are any. The texts have %s for them.
func (l *lowering) refuse(n node, ops opSet, why, nearest string) {
	if ops != 0 {
		with := strings.NewReplacer("%s", ops.String())
		l.reject(l.errorAt(FS, ops.list()[0], n.place, with.Replace(why), with.Replace(nearest)))
	}
}

// rejectFolder rejects the patterns that name a folder as if it were a file.
func (l *lowering) rejectFolder(p, tree Place) {
	for _, e := range l.p.pathEntries() {
		if q, ok := placeOf(e.text); ok && q == p {
			l.reject(entryError(e, "it is a folder, and a path without /** is one file", tree.String()))
		}
	}
}

// lowerChmod enforces chmod by file ownership, by read-only mounts, or by a filter that
// refuses the system calls everywhere.
func (l *lowering) lowerChmod(nodes []node) {
	if l.plan.NoMetadata = allowedAnywhere(nodes)&chmodSet == 0; l.plan.NoMetadata {
		return
	}
	for _, n := range nodes {
		switch {
		case !l.writable(n.place.Path): // the guest owns no file there
		case l.outer != nil:
			l.refuse(n, (allowedAt(l.outerPermissions, n.place)^n.allowed)&chmodSet,
				"a run has chmod where its runtime has it, or nowhere"+inRuntime, "deny chmod on /**")
		default:
			l.refuse(n, (chmodSet &^ n.allowed).when(n.allowed&writingSet != 0),
				"Landlock cannot restrict chmod, and the guest owns the files that it writes there",
				"allow chmod wherever writing is allowed, or nowhere")
		}
	}
}

func allowedAnywhere(nodes []node) (set opSet) {
	for _, n := range nodes {
		set |= n.allowed
	}
	return set
}

// lowerRename allows rename exactly where removing and creating are allowed, because
// Landlock cannot distinguish a rename within one folder from these, or refuses it
// everywhere.
func (l *lowering) lowerRename(nodes []node) {
	if l.plan.NoRename = allowedAnywhere(nodes)&renameSet == 0; l.plan.NoRename {
		return
	}
	for _, n := range nodes {
		may := n.allowed&renameSet != 0
		l.refuse(n, renameSet.when(may && n.allowed&removeWriteSet != removeWriteSet),
			"a rename removes one name and creates another", "allow rm and write with it")
		l.refuse(n, renameSet.when(!may && n.allowed.canRename()),
			"Landlock cannot distinguish a rename within a folder from removing and creating, which are allowed",
			"deny rm there, or rename everywhere")
	}
}

// canRename reports whether something can be renamed within a folder: a file, a folder or
// a link. Each needs a different operation to create it.
func (s opSet) canRename() bool { return s&setOf("rm") != 0 && s&createSet != 0 }

// sample returns a path that represents the whole place: patterns cannot contain a NUL, so
// that no deeper pattern matches it.
func (p Place) sample() string {
	if !p.Tree {
		return p.Path
	}
	return path.Join(p.Path, "\x00")
}

// newTree returns the nodes of the places, "/" first, each after its parent.
func newTree(places []Place) []node {
	places = append(slices.Clone(places), Place{Path: "/", Tree: true})
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(len(split(a.Path))-len(split(b.Path)), strings.Compare(a.Path, b.Path),
			cmp.Compare(len(b.String()), len(a.String()))) // P/** before P
	})
	places = slices.Compact(places)
	nodes := make([]node, len(places))
	for i, p := range places {
		nodes[i] = node{place: p, parent: enclosing(nodes[:i], p)}
	}
	return nodes
}

// enclosing returns the index of the deepest node that contains p, or -1.
func enclosing(nodes []node, p Place) int {
	for i, n := range slices.Backward(nodes) {
		if n.place.Tree && n.place.contains(p) {
			return i
		}
	}
	return -1
}

// folderPlaces returns the folders as places.
func folderPlaces(folders ...[]string) []Place {
	var places []Place
	for _, f := range slices.Concat(folders...) {
		places = append(places, Place{Path: f, Tree: true})
	}
	return places
}

// places returns the places that rules of fs or childProcess name.
func (p Permissions) places(scope string) []Place {
	var places []Place
	for _, e := range p.entries(scope) {
		if place, ok := placeOf(e.text); ok {
			places = append(places, place)
		}
	}
	return places
}
