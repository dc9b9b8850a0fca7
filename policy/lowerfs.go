package policy

import "slices"

// inRuntime ends the reason why a run cannot have what a runtime can.
const inRuntime = ": this belongs in the runtime's own permissions"

// fsNode is a node and what is to hold there.
type fsNode struct {
	node
	said opSet // what the rules allow, as far as childProcess lets it
	want opSet // with what Node needs

	// What holds when the node has been lowered.
	land             opSet // Landlock's grants here and above; chmod where it is left alone
	hidden, ro, noex bool
}

// fs lowers fs to grants and mounts, from "/" down.
func (l *lowering) fs() {
	l.keepNeeds()
	nodes := l.fsNodes()
	l.exact(nodes)
	l.sight(nodes)
	l.keepOwn(nodes)
	l.hold(nodes)
	if len(l.errs) > 0 {
		return // what follows would say the same again in other words
	}
	l.chmod(nodes)
	l.rename(nodes)
	l.watch(nodes)
	if l.outer == nil {
		l.seal(nodes)
		l.pin(nodes)
	}
}

// hold makes each node's grants, and its mounts.
func (l *lowering) hold(nodes []fsNode) {
	for i := range nodes {
		n := &nodes[i]
		var up fsNode
		if n.parent >= 0 {
			up = nodes[n.parent]
		}
		if l.outer == nil {
			l.mount(n, up)
		} else {
			l.borrow(n, up)
		}
		if g := n.want &^ up.land & landlockSet; g != 0 {
			l.plan.Grants = append(l.plan.Grants, Grant{n.place, g.list()})
		}
		n.land = up.land | n.want
	}
	if nodes[0].land&landlockSet == landlockSet {
		l.plan.Grants = nil // "/" has it all: mounts hold the rest
	} else {
		l.plan.Restricts = true
	}
}

// fsNodes are the places that rules or the world name, the programs of a list
// among them, since execute is granted only there.
func (l *lowering) fsNodes() []fsNode {
	places := slices.Concat(placesOf(scopeNamed(FS), l.p.FS), trees(l.w.Own, l.w.Shared), l.plan.Spawn.Only)
	if l.outer != nil {
		places = append(places, placesOf(scopeNamed(FS), l.outerFS)...)
	}
	for _, n := range l.w.Needed {
		places = append(places, n.place())
	}
	var nodes []fsNode
	for _, n := range newTree(places) {
		said := l.said(n.place)
		nodes = append(nodes, fsNode{node: n, said: said, want: said | l.needed(n.place)})
	}
	return nodes
}

func (n Need) place() Place { return Place{Path: n.Path, Tree: n.Tree} }

// needs reports whether Node needs what is at a place. What the guest itself has in its
// own folders it does not, wherever they are: libraries are the image's.
func (l *lowering) needs(n Need, at Place) bool {
	isOwn := func(f string) bool { return f != n.Path && within(n.Path, f) && within(f, at.Path) }
	return n.place().holds(at) && !slices.ContainsFunc(slices.Concat(l.w.Own, l.w.Shared), isOwn)
}

// keepOwn refuses a folder of the guest's where Node needs what the permissions deny: what
// the guest makes there would have it, too.
func (l *lowering) keepOwn(nodes []fsNode) {
	for _, n := range nodes {
		own := n.place.Tree && (slices.Contains(l.w.Own, n.place.Path) || slices.Contains(l.w.Shared, n.place.Path))
		if more := n.want &^ n.said &^ sightSet; own && more != 0 && n.want&writingSet != 0 {
			l.refuse(l.at(FS, more.list()[0], n.place, "Node itself needs "+more.String()+" there, and the folder is the guest's own", "another working directory"))
		}
	}
}

func (l *lowering) said(p Place) opSet {
	set := decided(l.p, p)
	if l.plan.Spawn.Only != nil && !l.spawns(p) {
		set &^= executeSet
	}
	return set
}

// decided are the operations of fs that p allows at a place.
func decided(p Permissions, at Place) opSet {
	var set opSet
	for i, o := range scopeNamed(FS).ops {
		if p.Decide(FS, o.name, at.probe()).Allowed {
			set |= 1 << i
		}
	}
	return set
}

// needed are the operations Node needs at a place. A list of programs leaves
// execute to loaders only.
func (l *lowering) needed(p Place) opSet {
	var set opSet
	for _, n := range l.w.Needed {
		if !l.needs(n, p) {
			continue
		}
		ops := setOf(n.Operations...) | sightSet
		if l.plan.Spawn.Only != nil && !n.Loader {
			ops &^= executeSet
		}
		set |= ops
	}
	return set
}

// keepNeeds refuses a rule that denies what Node needs just there. One that
// denies more, like /usr/**, leaves the need as it is.
func (l *lowering) keepNeeds() {
	for _, e := range entriesOf(scopeNamed(FS), l.p.FS) {
		p, _ := placeOf(e.text)
		for _, n := range l.w.Needed {
			inside := p.Path == n.Path || l.needs(n, p)
			if inside && l.deniesNeed(e, p, n) {
				l.refuse(refuseEntry(e, "Node itself needs it: "+n.Reason, "leave it out"))
			}
		}
	}
}

func (l *lowering) deniesNeed(e entry, p Place, n Need) bool {
	return slices.ContainsFunc((setOf(n.Operations...) | sightSet).list(), func(op Operation) bool {
		d := l.p.Decide(FS, op, p.probe())
		return !d.Allowed && d.Rule == e.rule
	})
}

// What Landlock cannot hold place by place is held for the whole guest here, or
// refused.

// exact refuses what makes no sense for one file, since its right is looked for
// on the folder, and a file with other places below it.
func (l *lowering) exact(nodes []fsNode) {
	for i, n := range nodes {
		if n.place.Tree {
			continue
		}
		tree := Place{Path: n.place.Path, Tree: true}
		if more := n.said &^ nodes[n.parent].said & folderSet; more != 0 {
			l.refuse(l.at(FS, more.list()[0], n.place,
				more.String()+" is held by the folder, and this is one file", tree.String()+", or operations without "+more.String()))
		}
		inside := func(m fsNode) bool { return m.place != n.place && tree.holds(m.place) }
		if slices.ContainsFunc(nodes[i:], inside) || nodes[n.parent].place == tree {
			l.folder(n.place, tree)
		}
	}
}

// folder refuses the patterns that name a folder as if it were a file.
func (l *lowering) folder(p, tree Place) {
	for _, scope := range []string{FS, ChildProcess} {
		info := scopeNamed(scope)
		for _, e := range entriesOf(info, *info.of(&l.p)) {
			if q, ok := placeOf(e.text); ok && q == p {
				l.refuse(refuseEntry(e, "it is a folder, and a path without /** is one file", tree.String()))
			}
		}
	}
}

// sight refuses to withhold stat or readlink where something else is allowed.
func (l *lowering) sight(nodes []fsNode) {
	for _, n := range nodes {
		if missing := sightSet &^ n.said; n.said != 0 && missing != 0 {
			l.refuse(l.at(FS, missing.list()[0], n.place,
				"the kernel has no hook for "+missing.String()+" where something else is allowed", "deny everything there"))
		}
	}
}

// chmod is held by whose files they are, by read-only mounts, or by refusing the
// calls altogether.
func (l *lowering) chmod(nodes []fsNode) {
	if !slices.ContainsFunc(nodes, func(n fsNode) bool { return n.said&chmodSet != 0 }) {
		l.plan.NoMetadata = true
		return
	}
	for _, n := range nodes {
		if !l.writable(n.place.Path) {
			continue // no file there is the guest's
		}
		if l.outer != nil {
			l.chmodOfRun(n)
			continue
		}
		if n.said&chmodSet == 0 && n.said&writingSet != 0 {
			l.refuse(l.at(FS, "chmod", n.place,
				"Landlock holds no chmod, and whoever writes files there owns them",
				"allow chmod wherever writing is allowed, or nowhere"))
		}
	}
}

func (l *lowering) chmodOfRun(n fsNode) {
	outer := decided(Permissions{FS: l.outerFS}, n.place)
	if (outer^n.said)&chmodSet != 0 {
		l.refuse(l.at(FS, "chmod", n.place,
			"a run has chmod where its runtime has it, or nowhere"+inRuntime, "deny chmod on /**"))
	}
}

// watch is refused altogether where a folder that others may change is to be seen and not
// to be listed.
func (l *lowering) watch(nodes []fsNode) {
	l.plan.NoWatch = slices.ContainsFunc(nodes, func(n fsNode) bool {
		return n.place.Tree && !n.hidden && n.said&listSet == 0 && l.writable(n.place.Path)
	})
}

// rename within one folder is to Landlock nothing but removing and creating, so
// it is allowed exactly where those are, or refused altogether.
func (l *lowering) rename(nodes []fsNode) {
	if !slices.ContainsFunc(nodes, func(n fsNode) bool { return n.said&renameSet != 0 }) {
		l.plan.NoRename = true
		return
	}
	for _, n := range nodes {
		can, may := n.said.moves(), n.said&renameSet != 0
		switch {
		case may && n.said&moveSet != moveSet:
			l.refuse(l.at(FS, "rename", n.place, "a rename removes one name and creates another", "allow rm and write with it"))
		case can && !may:
			l.refuse(l.at(FS, "rename", n.place,
				"Landlock cannot tell a rename within a folder from rm and what creates, which are allowed",
				"deny rm there, or rename everywhere"))
		}
	}
}

// moves reports whether something can be renamed within a folder: a file, a folder or
// a link, by what it takes to create one.
func (s opSet) moves() bool { return s&setOf("rm") != 0 && s&makeSet != 0 }
