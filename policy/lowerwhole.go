package policy

import "slices"

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
