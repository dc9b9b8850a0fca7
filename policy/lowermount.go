package policy

import (
	"path"
	"slices"
)

// mount holds what a place lacks of what holds around it: hidden if it lacks
// all, else by a mount flag.
func (l *lowering) mount(n *fsNode, up fsNode) {
	n.hidden, n.readOnly, n.noExec = up.hidden, up.readOnly, up.noExec
	if n.granted == 0 {
		if !up.hidden {
			l.plan.Hide = append(l.plan.Hide, n.place)
			n.hidden = true
		}
		return
	}
	if up.hidden {
		l.plan.Show = append(l.plan.Show, n.place)
		n.hidden = false
	}
	revoked := n.revoked(up)
	if revoked&writingSet != 0 && n.granted&writingSet == 0 && !n.readOnly {
		l.plan.ReadOnly = append(l.plan.ReadOnly, n.place)
		n.readOnly = true
	}
	if revoked&executeSet != 0 && n.allowed != 0 && !n.noExec {
		l.plan.NoExec = append(l.plan.NoExec, n.place)
		n.noExec = true
	}
	l.rejectUnheld(n, revoked&^n.refusedByMounts())
	l.rejectRegrant(n)
}

// revoked are the operations that Landlock grants around a node and that are not to
// be had there. No file can be listed.
func (n *fsNode) revoked(up fsNode) opSet {
	revoked := up.inherited &^ n.granted &^ statSet
	if !n.place.Tree {
		revoked &^= setOf("readdir")
	}
	return revoked
}

// flags are the operations that the mount flags at a node refuse.
func (n *fsNode) refusedByMounts() opSet {
	var set opSet
	if n.readOnly {
		set |= writingSet
	}
	if n.noExec {
		set |= executeSet
	}
	return set
}

// rejectUnheld refuses operations that are allowed around a place, denied there, and
// that no mount can take away. Rename and chmod are looked at as a whole. A need
// that is shown in a hidden place may have more than it needs: never to write, if
// it does not need to, and always to execute, without which libraries cannot be
// mapped.
func (l *lowering) rejectUnheld(n *fsNode, revoked opSet) {
	revoked &^= renameSet | chmodSet
	if revoked == 0 || n.allowed == 0 {
		return
	}
	ops := revoked.list()
	l.reject(l.errorAt(FS, ops[0], n.place,
		"Landlock cannot take back "+revoked.String()+" below a folder that has it",
		"deny everything there, or execute, or all of "+joinOps(writing)))
}

// rejectRegrant refuses a place that has more than the flags of a mount around it let
// through.
func (l *lowering) rejectRegrant(n *fsNode) {
	if more := n.granted & n.refusedByMounts(); more != 0 {
		why := "it lies below a folder where this is denied within one where it is allowed"
		if l.needed(n.place)&more != 0 {
			why = "Node itself needs " + more.String() + " there"
		}
		l.reject(l.errorAt(FS, more.list()[0], n.place, why, "deny it in the outermost folder, and allow it from there on"))
	}
}

// useRuntimeMounts is mount for a run: it has its runtime's mounts and no others.
func (l *lowering) useRuntimeMounts(n *fsNode, up fsNode) {
	n.hidden = l.outer.Hides(n.place)
	n.readOnly = insideAny(l.outer.ReadOnly, n.place)
	n.noExec = insideAny(l.outer.NoExec, n.place)
	revoked := n.revoked(up) &^ n.refusedByMounts() &^ (renameSet | chmodSet)
	if revoked == 0 || n.hidden || n.allowed == 0 && n.granted != 0 {
		return
	}
	l.reject(l.errorAt(FS, revoked.list()[0], n.place,
		"a run has no mounts of its own to take back "+revoked.String()+" below a folder that has it"+inRuntime,
		"deny it in the outermost folder, and allow it beside this one"))
}

func insideAny(in []Place, p Place) bool {
	return slices.ContainsFunc(in, func(q Place) bool { return q.contains(p) })
}

// Hides reports whether the longest of Hide and Show around a place is in Hide.
func (p *Plan) Hides(at Place) bool {
	hidden, longest := false, -1
	for i, list := range [][]Place{p.Show, p.Hide} {
		for _, q := range list {
			if q.contains(at) && len(q.Path) > longest {
				hidden, longest = i == 1, len(q.Path)
			}
		}
	}
	return hidden
}

// seal finds the guest's folders that are not to be its own.
func (l *lowering) seal(nodes []fsNode) {
	for _, n := range nodes {
		own := n.place.Tree && slices.Contains(l.w.Own, n.place.Path)
		if own && n.granted&writingSet == 0 {
			l.plan.Sealed = append(l.plan.Sealed, n.place.Path)
		}
	}
	for _, n := range nodes {
		f := l.ownerOf(n.place)
		if f != "" && n.granted&writingSet == chmodSet && slices.Contains(l.plan.Sealed, f) {
			l.reject(l.errorAt(FS, "chmod", n.place, "chmod alone cannot be held in a folder the guest does not own", "allow write as well"))
		}
	}
}

// ownerOf returns the deepest of the guest's own folders around a place.
func (l *lowering) ownerOf(p Place) string {
	deepest := ""
	for _, f := range l.w.Own {
		if within(f, p.Path) && len(f) > len(deepest) {
			deepest = f
		}
	}
	return deepest
}

// pin finds the folders on the way to a mount that the guest could move away,
// and put another in the place that the mount was to hold. A folder, or a file, with a
// grant of its own is one: Landlock's grants go along with it.
func (l *lowering) pin(nodes []fsNode) {
	plain := make([]node, len(nodes))
	for i, n := range nodes {
		plain[i] = n.node
	}
	held := slices.Concat(l.plan.Hide, l.plan.ReadOnly, l.plan.NoExec)
	for _, p := range held {
		l.pinUp(nodes, plain, path.Dir(p.Path), held)
	}
	for _, g := range l.plan.Grants {
		dir := g.Place.Path
		if !g.Place.Tree {
			dir = path.Dir(dir)
			l.pinFile(nodes[enclosing(plain, Place{Path: dir, Tree: true})], g.Place, held)
		}
		l.pinUp(nodes, plain, dir, held)
	}
	slices.Sort(l.plan.Pinned)
}

// pinUp pins a folder and those above it, as far as they can be moved and no mount is
// there anyway.
func (l *lowering) pinUp(nodes []fsNode, plain []node, dir string, held []Place) {
	movable := setOf("rm", "create_dir") // what Landlock asks for to rename a folder
	for ; dir != "/"; dir = path.Dir(dir) {
		over := Place{Path: path.Dir(dir), Tree: true}
		moves := !l.plan.NoRename && nodes[enclosing(plain, over)].granted&movable == movable && l.writable(over.Path)
		if moves && !slices.Contains(held, Place{dir, true}) && !slices.Contains(l.plan.Pinned, dir) {
			l.plan.Pinned = append(l.plan.Pinned, dir)
		}
	}
}

// pinFile pins a file that could be moved, or have a second name, in its folder.
func (l *lowering) pinFile(folder fsNode, file Place, held []Place) {
	if !l.plan.NoRename && folder.granted&removeWriteSet == removeWriteSet && l.writable(path.Dir(file.Path)) && !slices.Contains(held, file) {
		l.plan.Pinned = append(l.plan.Pinned, file.Path)
	}
}

// writable reports whether a path lies in a folder where the guest may have files
// of its own, permissions apart.
func (l *lowering) writable(name string) bool {
	return slices.ContainsFunc(slices.Concat(l.w.Own, l.w.Shared), func(f string) bool { return within(f, name) })
}
