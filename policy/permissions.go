package policy

import (
	"path"
	"slices"
)

// Mode is [Allow] or [Deny].
type Mode string

// The modes of a rule or a default.
const (
	Allow Mode = "allow"
	Deny  Mode = "deny"
)

// Operation is an action within a scope, such as "read" or "connect". Names are local to
// their scope: "read" means one thing in fs and another in env.
type Operation string

// Permissions are a guest's permissions, by scope. A zero Scope is omitted:
// [Permissions.Over] replaces it by the base's Scope.
type Permissions struct {
	FS           Scope `json:"fs,omitzero"`
	Network      Scope `json:"network,omitzero"`
	ChildProcess Scope `json:"childProcess,omitzero"`
	Process      Scope `json:"process,omitzero"`
	Env          Scope `json:"env,omitzero"`
}

// Scope is a default and its exceptions; the last matching rule decides. The zero Scope is
// omitted, not denied. {Default: Deny} is "deny" in JSON. If there are rules, an empty
// Default means [Deny].
type Scope struct {
	Default Mode   `json:"default,omitempty"`
	Rules   []Rule `json:"rules"`
}

// Rule allows or denies operations on the resources that its patterns match.
type Rule struct {
	Mode Mode `json:"mode"`

	// Operations are the operations that the rule decides; nil and "*" alone mean all of
	// the scope.
	Operations []Operation `json:"operations,omitempty"`

	// Paths are the patterns of an fs rule; Patterns are the patterns of a network,
	// childProcess or env rule. A process rule has neither.
	Paths    []string `json:"paths,omitempty"`
	Patterns []string `json:"patterns,omitempty"`
}

// IsZero reports whether the scope is omitted.
func (s Scope) IsZero() bool { return s.Default == "" && s.Rules == nil }

// Over merges p over base: omitted scopes of p are taken from base, all others from p.
// Rules of the two are never mixed.
func (p Permissions) Over(base Permissions) Permissions {
	for _, info := range scopes {
		if s := info.of(&p); s.IsZero() {
			*s = *info.of(&base)
		}
	}
	return p
}

// entries returns the patterns of a rule, from Paths or Patterns.
func (r Rule) entries() []string {
	if r.Paths != nil {
		return r.Paths
	}
	return r.Patterns
}

// IsZero reports whether all scopes are omitted.
func (p Permissions) IsZero() bool {
	for _, info := range scopes {
		if !info.of(&p).IsZero() {
			return false
		}
	}
	return true
}

// Clone returns a deep copy.
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

// Decide decides an operation on a resource: a path for fs and childProcess,
// tcp://host:port, udp://host:port or dns://name for network, a variable's name for env,
// anything for process. The last matching rule decides, else the default.
//
// In fs, stat and readlink are allowed wherever any other operation is, unless a later
// rule denies them.
//
// Unknown scopes and operations are denied, and so are paths that are not absolute and
// clean, and omitted scopes: merge p over [Default] first. p must have passed
// [Permissions.Check].
func (p Permissions) Decide(scope string, op Operation, resource string) Decision {
	info := scopeNamed(scope)
	op = op.name()
	if info == nil || !info.has(op) {
		return Decision{Rule: -1}
	}
	s := *info.of(&p)
	if info.key == "paths" || scope == ChildProcess {
		if !path.IsAbs(resource) || path.Clean(resource) != resource {
			return Decision{Rule: -1}
		}
	}
	if r, err := parseEndpoint(LowerName(resource)); scope == Network && err == nil && r.proto != "udp" && !r.isLocal() && op != "listen" {
		if !r.supports(op) {
			return Decision{Rule: -1}
		}
		if op == "dns" {
			op = "connect"
		}
		return newEgress(s, op).decide(r)
	}
	d := info.decide(s, op, resource)
	if d.Allowed || scope != FS || !slices.Contains(statOps, op) {
		return d
	}
	return info.implied(s, d, op, resource)
}

// PassesEnv reports whether the guest gets the variable.
func (p Permissions) PassesEnv(name string) bool {
	return p.Over(Default()).Decide(Env, "read", name).Allowed
}

// statOps have no hook in the kernel: if any other operation on a file is allowed, these
// are too.
var statOps = []Operation{"stat", "readlink"}

// implied returns the decision of another operation that a rule after the denial of op
// allows, or the denial.
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
		if !r.decides(op) {
			continue
		}
		matches := func(pattern string) bool { return s.match(pattern, op, resource) }
		if s.key == "" || slices.ContainsFunc(r.entries(), matches) {
			return Decision{Allowed: r.Mode == Allow, Rule: i}
		}
	}
	return Decision{Allowed: sc.Default == Allow, Rule: -1}
}

// writing are the fs operations that modify something.
var writing = []Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}

// Default returns the permissions of a runtime that requests none: everything within the
// guest's own world, with its localhost, and no other host.
func Default() Permissions {
	p := uniform(Allow)
	p.Network = Loopback()
	return p
}

// Strict denies everything: only computation is left.
func Strict() Permissions { return uniform(Deny) }

// Workspace is [Default] with writing only in cwd, an absolute and clean path, and below
// it.
func Workspace(cwd string) Permissions {
	p := Default()
	p.FS = Scope{Default: Allow, Rules: []Rule{
		{Mode: Deny, Operations: slices.Clone(writing), Paths: []string{"/**"}},
		{Mode: Allow, Operations: slices.Clone(writing), Paths: []string{Place{cwd, true}.String()}},
	}}
	return p
}

// Open is another name of [Default].
func Open() Permissions { return Default() }

// Loopback is a network scope that allows TCP and UDP to the guest's own servers, on any
// port, and nothing else. An omitted scope means the same; {Default: Deny} denies localhost, too.
func Loopback() Scope {
	return Scope{Default: Deny, Rules: []Rule{
		{Mode: Allow, Operations: []Operation{"fetch", "connect", "listen"}, Patterns: []string{"tcp://localhost:*", "udp://localhost:*"}},
	}}
}

// Preset is a named set of permissions, for the command line.
type Preset struct {
	Name  string
	About string
	Make  func(cwd string) Permissions
}

// Presets returns all presets, the strictest first.
func Presets() []Preset {
	fixed := func(f func() Permissions) func(string) Permissions {
		return func(string) Permissions { return f() }
	}
	return []Preset{
		{"strict", "nothing but compute; no IP sockets", fixed(Strict)},
		{"workspace", "write files below the working directory only; of the network localhost", Workspace},
		{"default", "everything within the guest's own world; of the network localhost", fixed(Default)},
		{"open", "the same as default", fixed(Open)},
	}
}

func uniform(m Mode) Permissions {
	var p Permissions
	for _, info := range scopes {
		*info.of(&p) = Scope{Default: m}
	}
	return p
}
