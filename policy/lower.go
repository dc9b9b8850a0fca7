package policy

import (
	"errors"
	"fmt"
	"slices"
)

// lowering is permissions on their way to a plan.
type lowering struct {
	p    Permissions // complete
	w    World
	plan *Plan
	errs []*RuleError

	// outer is the plan of the runtime, when this one is of a run: it can have no
	// mounts but those. outerFS is the runtime's scope.
	outer   *Plan
	outerFS Scope
}

// Lower says by what the kernel is to hold p in w. Scopes that p leaves out are
// [Default]'s. A rule that nothing can hold is a *[RuleError]; several are joined.
// What Check refuses is a *[FormatError].
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
	if l.holdable(FS) && l.holdable(ChildProcess) {
		l.spawn()
		l.fs()
	}
	l.network()
	l.process()
	if len(l.errs) > 0 {
		return nil, l.joined()
	}
	l.notes()
	return l.plan, nil
}

func (l *lowering) joined() error {
	if len(l.errs) == 1 {
		return l.errs[0]
	}
	errs := make([]error, len(l.errs))
	for i, err := range l.errs {
		errs[i] = err
	}
	return errors.Join(errs...)
}

// refuse keeps the first error of each place and reason: many nodes come of one
// rule.
func (l *lowering) refuse(err *RuleError) {
	same := func(old *RuleError) bool { return old.Place == err.Place && old.Why == err.Why }
	if !slices.ContainsFunc(l.errs, same) {
		l.errs = append(l.errs, err)
	}
}

// holdable refuses patterns of a scope of paths that stand for no single place.
func (l *lowering) holdable(scope string) bool {
	info := scopeNamed(scope)
	before := len(l.errs)
	for _, e := range entriesOf(info, *info.of(&l.p)) {
		if p, ok := placeOf(e.text); !ok {
			l.refuse(refuseEntry(e, "the kernel knows folders and files, not patterns of names", p.String()))
		}
	}
	return len(l.errs) == before
}

// at makes an error about the rule that decides op at a place, and names its
// pattern where that is the place itself.
func (l *lowering) at(scope string, op Operation, p Place, why, nearest string) *RuleError {
	info := scopeNamed(scope)
	rule := l.p.Decide(scope, op, p.probe()).Rule
	for _, e := range entriesOf(info, *info.of(&l.p)) {
		if q, ok := placeOf(e.text); ok && e.rule == rule && q == p {
			return refuseEntry(e, why, nearest)
		}
	}
	return refuse(scope, rule, fmt.Sprintf("at %s: %s", p, why), nearest)
}

// process has nothing to refuse: each operation is held or not.
func (l *lowering) process() {
	l.plan.NoSignals = !l.p.Decide(Process, "signal", "").Allowed
	l.plan.NoInspect = !l.p.Decide(Process, "inspect", "").Allowed
}
