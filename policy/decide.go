package policy

import (
	"path"
	"slices"
)

// Decision is whether an operation is allowed, and by which of the scope's rules.
type Decision struct {
	Allowed bool
	Rule    int // -1: the scope's default
}

// Decide returns what becomes of an operation on a resource: a path for fs and
// childProcess, tcp://host:port, udp://host:port or dns://name for network, a
// variable's name for env, anything for process. The last rule that matches
// decides, else the default.
//
// In fs, stat and readlink come along with any other operation that is allowed at
// the same path, unless a later rule denies them.
//
// Denied are an unknown scope or operation, a path that is not absolute and clean,
// and a scope that was left out: merge it over [Default] first. p must have
// passed [Permissions.Check].
func (p Permissions) Decide(scope string, op Operation, resource string) Decision {
	info := scopeNamed(scope)
	if info == nil || !info.has(op) {
		return Decision{Rule: -1}
	}
	s := *info.of(&p)
	if info.key == "paths" || scope == ChildProcess {
		if !path.IsAbs(resource) || path.Clean(resource) != resource {
			return Decision{Rule: -1}
		}
	}
	d := info.decide(s, op, resource)
	if d.Allowed || scope != FS || !slices.Contains(sightOps, op) {
		return d
	}
	return info.comeAlong(s, d, op, resource)
}

// PassesEnv reports whether the guest is given the variable.
func (p Permissions) PassesEnv(name string) bool {
	return p.Over(Default()).Decide(Env, "read", name).Allowed
}

// sightOps are those the kernel has no hook for: whoever may do anything with a
// file may do these.
var sightOps = []Operation{"stat", "readlink"}

// comeAlong finds an operation that is allowed by a rule after the one that
// denied op.
func (s *scopeInfo) comeAlong(sc Scope, denied Decision, op Operation, resource string) Decision {
	best := denied
	for _, o := range s.ops {
		d := s.decide(sc, o.name, resource)
		if o.name != op && d.Allowed && d.Rule > best.Rule {
			best = d
		}
	}
	return best
}

func (s *scopeInfo) decide(sc Scope, op Operation, resource string) Decision {
	for i, r := range slices.Backward(sc.Rules) {
		if r.Operations != nil && !slices.Contains(r.Operations, op) {
			continue
		}
		matches := func(pattern string) bool { return s.match(pattern, op, resource) }
		if s.key == "" || slices.ContainsFunc(r.entries(), matches) {
			return Decision{Allowed: r.Mode == Allow, Rule: i}
		}
	}
	return Decision{Allowed: sc.Default == Allow, Rule: -1}
}
