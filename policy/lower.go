package policy

import (
	"errors"
	"fmt"
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
