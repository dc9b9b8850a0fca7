package policy

import (
	"path"
	"slices"
)

// Mode says what becomes of an operation: [Allow] or [Deny].
type Mode string

// The modes.
const (
	Allow Mode = "allow"
	Deny  Mode = "deny"
)

// Operation is what a guest may want to do within a scope, "read" or "connect".
// The names belong to their scope: "read" is one thing in fs and another in env.
type Operation string

// Permissions are what a guest may do, scope by scope. A zero Scope is one that
// was left out: it stays what it is in the permissions these are merged over.
type Permissions struct {
	FS           Scope `json:"fs,omitzero"`
	Network      Scope `json:"network,omitzero"`
	ChildProcess Scope `json:"childProcess,omitzero"`
	Process      Scope `json:"process,omitzero"`
	Env          Scope `json:"env,omitzero"`
}

// Scope is a default and the rules that depart from it; of those that match, the
// last one decides. The zero Scope is left out, not denied. {Default: Deny} is
// "deny" in JSON. Where there are rules, a Default of "" means [Deny].
type Scope struct {
	Default Mode
	Rules   []Rule
}

// Rule allows or denies operations on what its patterns match.
type Rule struct {
	Mode Mode `json:"mode"`

	// Operations are those it speaks of; nil stands for all of the scope.
	Operations []Operation `json:"operations,omitempty"`

	// Paths are the patterns of a rule of fs, Patterns those of network,
	// childProcess and env. A rule of process has neither.
	Paths    []string `json:"paths,omitempty"`
	Patterns []string `json:"patterns,omitempty"`
}

// IsZero reports whether the scope was left out.
func (s Scope) IsZero() bool { return s.Default == "" && s.Rules == nil }

// Over merges p over base: a scope that p leaves out is the base's, any other is
// p's alone. Rules of the two are never mixed.
func (p Permissions) Over(base Permissions) Permissions {
	for _, info := range scopes {
		if s := info.of(&p); s.IsZero() {
			*s = *info.of(&base)
		}
	}
	return p
}

// entries are the patterns of a rule, wherever they are kept.
func (r Rule) entries() []string {
	if r.Paths != nil {
		return r.Paths
	}
	return r.Patterns
}

// IsZero reports whether all scopes were left out.
func (p Permissions) IsZero() bool {
	for _, info := range scopes {
		if !info.of(&p).IsZero() {
			return false
		}
	}
	return true
}

// Clone shares nothing with p.
func (p Permissions) Clone() Permissions {
	for _, info := range scopes {
		s := info.of(&p)
		s.Rules = slices.Clone(s.Rules)
		for i := range s.Rules {
			r := &s.Rules[i]
			r.Operations, r.Paths, r.Patterns = slices.Clone(r.Operations), slices.Clone(r.Paths), slices.Clone(r.Patterns)
		}
	}
	return p
}

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
	if d.Allowed || scope != FS || !slices.Contains(statOps, op) {
		return d
	}
	return info.implied(s, d, op, resource)
}

// PassesEnv reports whether the guest is given the variable.
func (p Permissions) PassesEnv(name string) bool {
	return p.Over(Default()).Decide(Env, "read", name).Allowed
}

// statOps are those the kernel has no hook for: whoever may do anything with a
// file may do these.
var statOps = []Operation{"stat", "readlink"}

// implied finds an operation that is allowed by a rule after the one that
// denied op.
func (s *scopeInfo) implied(sc Scope, denied Decision, op Operation, resource string) Decision {
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
