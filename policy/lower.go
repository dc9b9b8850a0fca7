package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
)

// lowering is the state of [Lower] and [LowerRun].
type lowering struct {
	p    Permissions // complete: no scope is omitted
	w    World
	plan *Plan
	errs []error // each is a *RuleError

	// outer is the runtime's plan when lowering a run, which can have no other mounts;
	// else nil. outerPermissions are the runtime's.
	outer            *Plan
	outerPermissions Permissions
}

// Lower translates p to the mechanisms that enforce it in w. Omitted scopes use [Default].
// Each rule that cannot be enforced is a *[RuleError]; several are joined. Permissions
// that Check rejects are a *[FormatError].
func Lower(p Permissions, w World) (*Plan, error) {
	return newLowering(p, w).lower()
}

func newLowering(p Permissions, w World) *lowering {
	return &lowering{p: p.Over(Default()), w: w, plan: &Plan{}}
}

func (l *lowering) lower() (*Plan, error) {
	if err := l.p.Check(); err != nil {
		return nil, err
	}
	if l.checkPlaces() {
		l.spawn()
		l.fs()
	}
	l.network()
	l.plan.NoSignals = !l.p.Decide(Process, "signal", "").Allowed
	l.plan.NoInspect = !l.p.Decide(Process, "inspect", "").Allowed
	if err := l.joinErrors(); err != nil {
		return nil, err
	}
	l.explain()
	return l.plan, nil
}

func (l *lowering) joinErrors() error {
	if len(l.errs) == 1 {
		return l.errs[0]
	}
	return errors.Join(l.errs...)
}

// reject records an error, once per place and reason: one rule can fail at many nodes.
func (l *lowering) reject(err *RuleError) {
	same := func(old error) bool {
		e, ok := errors.AsType[*RuleError](old)
		return ok && e.Place == err.Place && e.Why == err.Why
	}
	if !slices.ContainsFunc(l.errs, same) {
		l.errs = append(l.errs, err)
	}
}

// checkPlaces rejects patterns of paths that do not name exactly one place. It reports
// whether there were none.
func (l *lowering) checkPlaces() bool {
	before := len(l.errs)
	for _, e := range l.p.pathEntries() {
		if p, ok := placeOf(e.text); !ok {
			l.reject(entryError(e, "the kernel knows folders and files, not patterns of names", p.String()))
		}
	}
	return len(l.errs) == before
}

// errorAt returns an error about the rule that decides op at a place. If a pattern of the
// rule names exactly that place, the error quotes it.
func (l *lowering) errorAt(scope string, op Operation, p Place, why, nearest string) *RuleError {
	rule := l.p.Decide(scope, op, p.sample()).Rule
	for _, e := range l.p.entries(scope) {
		if q, ok := placeOf(e.text); ok && e.rule == rule && q == p {
			return entryError(e, why, nearest)
		}
	}
	return ruleError(scope, rule, fmt.Sprintf("at %s: %s", p, why), nearest)
}

// spawn lowers childProcess: to no execve at all, to any program, or to a list of places,
// the only ones where Landlock grants execute.
func (l *lowering) spawn() {
	nodes := newTree(l.p.places(ChildProcess))
	var only []Place
	any := l.spawns(nodes[0].place)
	for _, n := range nodes[1:] {
		here, above := l.spawns(n.place), l.spawns(nodes[n.parent].place)
		switch {
		case above && !here:
			l.reject(l.errorAt(ChildProcess, "spawn", n.place,
				"a program that is denied where others are allowed can be started as a copy",
				`default "deny" and rules that allow the programs wanted`))
		case here && !above:
			only = append(only, n.place)
		}
	}
	switch {
	case any:
	case only == nil:
		l.plan.Spawn.Denied = true
	default:
		l.plan.Spawn.Only = only
	}
	l.checkRunSpawn()
}

func (l *lowering) spawns(p Place) bool {
	return l.p.Decide(ChildProcess, "spawn", p.sample()).Allowed
}

// checkRunSpawn rejects a run's list of programs that differs from the runtime's.
func (l *lowering) checkRunSpawn() {
	if l.outer == nil || l.plan.Spawn.Denied || slices.Equal(l.plan.Spawn.Only, l.outer.Spawn.Only) {
		return
	}
	last := len(l.p.ChildProcess.Rules) - 1
	l.reject(ruleError(ChildProcess, last, "a run has its runtime's list of programs or starts none"+inRuntime, `"deny"`))
}

// mount enforces the revocations of a place from its parent node: it hides the place if no
// operation is left, and uses mount flags otherwise.
func (l *lowering) mount(n *node, up node) {
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
	// Rename and chmod are checked globally. A needed place shown inside a hidden one may get more than it needs: never
	// write access that it does not need, but always execute, because libraries cannot be mapped without it.
	l.refuse(*n, (revoked &^ n.refusedByMounts() &^ (renameSet | chmodSet)).when(n.allowed != 0),
		"Landlock cannot revoke %s below a folder that has it", "deny everything there, or execute, or all of "+join(writing))
	more := n.granted & n.refusedByMounts()
	why := "it lies below a folder where this is denied, inside one where it is allowed"
	if l.needed(n.place)&more != 0 {
		why = "Node itself needs %s there"
	}
	l.refuse(*n, more, why, "deny it in the outermost folder, and allow it below")
}

// revoked returns the operations that Landlock grants above a node and that the node must
// not have. readdir never applies to a file.
func (n *node) revoked(up node) opSet {
	revoked := up.inherited &^ n.granted &^ statSet
	if !n.place.Tree {
		revoked &^= setOf("readdir")
	}
	return revoked
}

// refusedByMounts returns the operations that the mount flags at a node refuse.
func (n *node) refusedByMounts() opSet {
	var set opSet
	if n.readOnly {
		set |= writingSet
	}
	if n.noExec {
		set |= executeSet
	}
	return set
}

// useRuntimeMounts replaces mount for a run, which has its runtime's mounts and no others.
func (l *lowering) useRuntimeMounts(n *node, up node) {
	n.hidden = l.outer.Hides(n.place)
	n.readOnly = insideAny(l.outer.ReadOnly, n.place)
	n.noExec = insideAny(l.outer.NoExec, n.place)
	revoked := n.revoked(up) &^ n.refusedByMounts() &^ (renameSet | chmodSet)
	l.refuse(*n, revoked.when(!n.hidden && (n.allowed != 0 || n.granted == 0)),
		"a run shares the runtime's mounts, and cannot revoke %s below a folder that has it"+inRuntime,
		"deny it in the outermost folder, and allow it beside this one")
}

func insideAny(in []Place, p Place) bool {
	return slices.ContainsFunc(in, func(q Place) bool { return q.contains(p) })
}

// Hides reports whether the plan hides a place: whether the longest matching path of Hide
// and Show is in Hide.
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

// seal finds the folders of World.Own that the guest must not own.
func (l *lowering) seal(nodes []node) {
	for _, n := range nodes {
		if n.place.Tree && slices.Contains(l.w.Own, n.place.Path) && n.granted&writingSet == 0 {
			l.plan.Sealed = append(l.plan.Sealed, n.place.Path)
		}
	}
	for _, n := range nodes {
		f := l.ownerOf(n.place)
		l.refuse(n, chmodSet.when(f != "" && n.granted&writingSet == chmodSet && slices.Contains(l.plan.Sealed, f)),
			"chmod alone cannot be enforced in a folder that the guest does not own", "allow write as well")
	}
}

// ownerOf returns the deepest folder of World.Own that contains a place, or "".
func (l *lowering) ownerOf(p Place) string {
	deepest := ""
	for _, f := range l.w.Own {
		if within(f, p.Path) && len(f) > len(deepest) {
			deepest = f
		}
	}
	return deepest
}

// pin finds the folders on the path to a mount that the guest could rename, to put another
// folder where the mount is expected. Folders and files with their own grant are pinned
// too, because Landlock's grants move with them.
func (l *lowering) pin(nodes []node) {
	held := slices.Concat(l.plan.Hide, l.plan.ReadOnly, l.plan.NoExec)
	for _, p := range held {
		l.pinUp(nodes, path.Dir(p.Path), held)
	}
	for _, g := range l.plan.Grants {
		dir := g.Place.Path
		if !g.Place.Tree {
			dir = path.Dir(dir)
			folder := nodes[enclosing(nodes, Place{Path: dir, Tree: true})]
			// It could be renamed or hard-linked.
			if !l.plan.NoRename && folder.granted&removeWriteSet == removeWriteSet && l.writable(dir) && !slices.Contains(held, g.Place) {
				l.plan.Pinned = append(l.plan.Pinned, g.Place.Path)
			}
		}
		l.pinUp(nodes, dir, held)
	}
	slices.Sort(l.plan.Pinned)
}

// pinUp pins dir and its parents, except folders that are mounts or cannot be renamed.
func (l *lowering) pinUp(nodes []node, dir string, held []Place) {
	movable := setOf("rm", "create_dir") // the rights that Landlock checks to rename a folder
	for ; dir != "/"; dir = path.Dir(dir) {
		over := Place{Path: path.Dir(dir), Tree: true}
		moves := !l.plan.NoRename && nodes[enclosing(nodes, over)].granted&movable == movable && l.writable(over.Path)
		if moves && !slices.Contains(held, Place{dir, true}) && !slices.Contains(l.plan.Pinned, dir) {
			l.plan.Pinned = append(l.plan.Pinned, dir)
		}
	}
}

// writable reports whether a path lies in a folder where the guest may own files, ignoring
// permissions.
func (l *lowering) writable(name string) bool {
	return slices.ContainsFunc(slices.Concat(l.w.Own, l.w.Shared), func(f string) bool { return within(f, name) })
}
