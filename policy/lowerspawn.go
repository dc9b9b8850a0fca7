package policy

import "slices"

// spawn lowers childProcess: to no execve at all, to any, or to a list of places
// which are the only ones where Landlock grants execute.
func (l *lowering) spawn() {
	info := scopeNamed(ChildProcess)
	nodes := newTree(placesOf(info, l.p.ChildProcess))
	var only []Place
	any := l.spawns(nodes[0].place)
	for _, n := range nodes[1:] {
		here, above := l.spawns(n.place), l.spawns(nodes[n.parent].place)
		switch {
		case above && !here:
			l.refuse(l.at(ChildProcess, "spawn", n.place,
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
	l.spawnOfRun()
}

func (l *lowering) spawns(p Place) bool {
	return l.p.Decide(ChildProcess, "spawn", p.probe()).Allowed
}

// spawnOfRun refuses a list that is not the runtime's.
func (l *lowering) spawnOfRun() {
	if l.outer == nil || l.plan.Spawn.Denied || slices.Equal(l.plan.Spawn.Only, l.outer.Spawn.Only) {
		return
	}
	l.refuse(refuse(ChildProcess, l.lastRule(ChildProcess), "a run has its runtime's list of programs or starts none"+inRuntime, `"deny"`))
}

// lastRule is the index of the scope's last rule, -1 if it has none.
func (l *lowering) lastRule(scope string) int {
	return len(scopeNamed(scope).of(&l.p).Rules) - 1
}
