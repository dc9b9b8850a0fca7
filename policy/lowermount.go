package policy

import (
	"path"
	"slices"
)

// mount holds what a place lacks of what holds around it: hidden if it lacks
// all, else by a mount flag.
func (l *lowering) mount(n *fsNode, up fsNode) {
	n.hidden, n.ro, n.noex = up.hidden, up.ro, up.noex
	if n.want == 0 {
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
	lost := n.lost(up)
	if lost&writingSet != 0 && n.want&writingSet == 0 && !n.ro {
		l.plan.ReadOnly = append(l.plan.ReadOnly, n.place)
		n.ro = true
	}
	if lost&executeSet != 0 && n.said != 0 && !n.noex {
		l.plan.NoExec = append(l.plan.NoExec, n.place)
		n.noex = true
	}
	l.leftover(n, lost&^n.flags())
	l.beneath(n)
}

// lost are the operations that Landlock grants around a node and that are not to
// be had there. No file can be listed.
func (n *fsNode) lost(up fsNode) opSet {
	lost := up.land &^ n.want &^ sightSet
	if !n.place.Tree {
		lost &^= setOf("readdir")
	}
	return lost
}

// flags are the operations that the mount flags at a node refuse.
func (n *fsNode) flags() opSet {
	var set opSet
	if n.ro {
		set |= writingSet
	}
	if n.noex {
		set |= executeSet
	}
	return set
}

// leftover refuses operations that are allowed around a place, denied there, and
// that no mount can take away. Rename and chmod are looked at as a whole. A need
// that is shown in a hidden place may have more than it needs: never to write, if
// it does not need to, and always to execute, without which libraries cannot be
// mapped.
func (l *lowering) leftover(n *fsNode, lost opSet) {
	lost &^= renameSet | chmodSet
	if lost == 0 || n.said == 0 {
		return
	}
	ops := lost.list()
	l.refuse(l.at(FS, ops[0], n.place,
		"Landlock cannot take back "+lost.String()+" below a folder that has it",
		"deny everything there, or execute, or all of "+joinOps(writing)))
}

// beneath refuses a place that has more than the flags of a mount around it let
// through.
func (l *lowering) beneath(n *fsNode) {
	if more := n.want & n.flags(); more != 0 {
		why := "it lies below a folder where this is denied within one where it is allowed"
		if l.needed(n.place)&more != 0 {
			why = "Node itself needs " + more.String() + " there"
		}
		l.refuse(l.at(FS, more.list()[0], n.place, why, "deny it in the outermost folder, and allow it from there on"))
	}
}

// borrow is mount for a run: it has its runtime's mounts and no others.
func (l *lowering) borrow(n *fsNode, up fsNode) {
	n.hidden = l.outer.Hides(n.place)
	n.ro = lies(l.outer.ReadOnly, n.place)
	n.noex = lies(l.outer.NoExec, n.place)
	lost := n.lost(up) &^ n.flags() &^ (renameSet | chmodSet)
	if lost == 0 || n.hidden || n.said == 0 && n.want != 0 {
		return
	}
	l.refuse(l.at(FS, lost.list()[0], n.place,
		"a run has no mounts of its own to take back "+lost.String()+" below a folder that has it"+inRuntime,
		"deny it in the outermost folder, and allow it beside this one"))
}

func lies(in []Place, p Place) bool {
	return slices.ContainsFunc(in, func(q Place) bool { return q.holds(p) })
}

// Hides reports whether the longest of Hide and Show around a place is in Hide.
func (p *Plan) Hides(at Place) bool {
	hidden, longest := false, -1
	for i, list := range [][]Place{p.Show, p.Hide} {
		for _, q := range list {
			if q.holds(at) && len(q.Path) > longest {
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
		if own && n.want&writingSet == 0 {
			l.plan.Sealed = append(l.plan.Sealed, n.place.Path)
		}
	}
	for _, n := range nodes {
		f := l.ownerOf(n.place)
		if f != "" && n.want&writingSet == chmodSet && slices.Contains(l.plan.Sealed, f) {
			l.refuse(l.at(FS, "chmod", n.place, "chmod alone cannot be held in a folder the guest does not own", "allow write as well"))
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
			l.pinFile(nodes[around(plain, Place{Path: dir, Tree: true})], g.Place, held)
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
		moves := !l.plan.NoRename && nodes[around(plain, over)].want&movable == movable && l.writable(over.Path)
		if moves && !slices.Contains(held, Place{dir, true}) && !slices.Contains(l.plan.Pinned, dir) {
			l.plan.Pinned = append(l.plan.Pinned, dir)
		}
	}
}

// pinFile pins a file that could be moved, or have a second name, in its folder.
func (l *lowering) pinFile(folder fsNode, file Place, held []Place) {
	if !l.plan.NoRename && folder.want&moveSet == moveSet && l.writable(path.Dir(file.Path)) && !slices.Contains(held, file) {
		l.plan.Pinned = append(l.plan.Pinned, file.Path)
	}
}

// writable reports whether a path lies in a folder where the guest may have files
// of its own, permissions apart.
func (l *lowering) writable(name string) bool {
	return slices.ContainsFunc(slices.Concat(l.w.Own, l.w.Shared), func(f string) bool { return within(f, name) })
}
