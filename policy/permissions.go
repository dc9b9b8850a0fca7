package policy

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
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
func (p Permissions) IsZero() bool { return reflect.ValueOf(p).IsZero() }

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
	if (info.key == "paths" || scope == ChildProcess) && (!path.IsAbs(resource) || path.Clean(resource) != resource) {
		return Decision{Rule: -1}
	}
	if scope == Network && op != "listen" {
		if r, err := parseEndpoint(LowerName(resource)); err == nil && r.proto != "udp" && !r.isLocal() {
			if !r.supports(op) {
				return Decision{Rule: -1}
			}
			if op == "dns" {
				op = "connect"
			}
			return newEgress(s, op).decide(r)
		}
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
		if d := s.decide(sc, o.name, resource); o.name != op && d.Allowed && d.Rule > best.Rule {
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
		if s.key == "" || slices.ContainsFunc(r.entries(), func(pattern string) bool { return s.match(pattern, op, resource) }) {
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
	Name, About string
	Make        func(cwd string) Permissions
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

// The names of the scopes.
const (
	FS           = "fs"
	Network      = "network"
	ChildProcess = "childProcess"
	Process      = "process"
	Env          = "env"
)

// scopeInfo describes one scope of the language. The parser, the checks and the schema use
// this table.
type scopeInfo struct {
	name, about string
	of          func(*Permissions) *Scope
	key         string // JSON key of a rule's patterns; "" for a scope without patterns
	entries     string // describes a pattern
	ops         []opInfo
	pattern     func(string) error // validates a pattern
	match       func(pattern string, op Operation, resource string) bool
}

type opInfo struct {
	name  Operation
	about string
}

var scopes = []scopeInfo{
	{
		name: FS, about: "files and folders of the guest's own tree",
		of:  func(p *Permissions) *Scope { return &p.FS },
		key: "paths", entries: "an absolute path; * and ? match within one element, ** matches any elements, P/** is P and all below it",
		pattern: checkPath, match: matchPathOp,
		ops: []opInfo{
			{"read", "read the content of a file"},
			{"write", "write to a file, or create one"},
			{"stat", "see that a file exists, its size, times and owner; allowed with any other operation"},
			{"readdir", "list a folder"},
			{"create_dir", "create a folder"},
			{"rm", "remove a file or folder"},
			{"rename", "rename, and link from one folder to another; also takes rm and write"},
			{"symlink", "create a symbolic link"},
			{"readlink", "read a symbolic link; allowed with any other operation"},
			{"chmod", "change mode, owner, times and extended attributes"},
			{"truncate", "cut a file short"},
			{"execute", "start a file as a program"},
		},
	},
	{
		name: Network, about: "sockets, except those between the guest's own processes",
		of:  func(p *Permissions) *Scope { return &p.Network },
		key: "patterns", entries: "tcp://HOST:PORT, udp://HOST:PORT or dns://NAME; PORT may be *, HOST and NAME may be * or *.NAME",
		pattern: checkNet, match: matchNet,
		ops: []opInfo{
			{"fetch", "make a request; the kernel cannot distinguish it from connect"},
			{"connect", "connect to a port, or send to it"},
			{"listen", "accept connections"},
			{"dns", "look up a name"},
		},
	},
	{
		name: ChildProcess, about: "programs the guest starts",
		of:  func(p *Permissions) *Scope { return &p.ChildProcess },
		key: "patterns", entries: "the absolute path of a program; P/** is all programs below P",
		pattern: checkPath, match: matchPathOp,
		ops: []opInfo{{"spawn", "start a program"}},
	},
	{
		name: Process, about: "other processes of the guest",
		of: func(p *Permissions) *Scope { return &p.Process },
		ops: []opInfo{
			{"signal", "send a signal"},
			{"inspect", "see other processes in /proc, and trace them"},
		},
	},
	{
		name: Env, about: "variables of the environment",
		of:  func(p *Permissions) *Scope { return &p.Env },
		key: "patterns", entries: "a variable's name; * matches any characters and ? one",
		pattern: checkEnv, match: func(pattern string, _ Operation, name string) bool { return matchWildcard(pattern, name) },
		ops: []opInfo{{"read", "get the variable"}},
	},
}

func scopeNamed(name string) *scopeInfo {
	for i := range scopes {
		if scopes[i].name == name {
			return &scopes[i]
		}
	}
	return nil
}

func (s *scopeInfo) has(op Operation) bool {
	return slices.ContainsFunc(s.ops, func(o opInfo) bool { return o.name == op })
}

// decidesAll reports whether a rule decides all operations of its scope.
func (r Rule) decidesAll() bool {
	return r.Operations == nil || slices.Equal(r.Operations, []Operation{everyOperation})
}

// decides reports whether a rule decides op.
func (r Rule) decides(op Operation) bool {
	return r.decidesAll() || slices.ContainsFunc(r.Operations, func(o Operation) bool { return o.name() == op })
}

// operations returns the operations that a rule decides.
func (s *scopeInfo) operations(r Rule) []Operation {
	var list []Operation
	for _, o := range s.ops {
		if r.decides(o.name) {
			list = append(list, o.name)
		}
	}
	return list
}

// everyOperation is the operation of a rule that decides all of its scope.
const everyOperation Operation = "*"

// name returns the name in the scope's table, for an operation that has two.
func (op Operation) name() Operation {
	if op == "http" {
		return "fetch"
	}
	return op
}

// opSet is a set of fs operations: one bit for each row of the table.
type opSet uint16

var (
	statSet        = setOf(statOps...)
	writingSet     = setOf(writing...)
	executeSet     = setOf("execute")
	chmodSet       = setOf("chmod")
	renameSet      = setOf("rename")
	listSet        = setOf("readdir")
	removeWriteSet = setOf("rm", "write")
	createSet      = setOf("write", "create_dir", "symlink")
	landlockSet    = setOf(scopeNamed(FS).operations(Rule{})...) &^ statSet &^ chmodSet

	// folderSet are the operations whose right Landlock checks on the folder.
	folderSet = setOf("readdir", "create_dir", "rm", "rename", "symlink")
)

func setOf(ops ...Operation) opSet {
	return setWhere(func(op Operation) bool { return slices.Contains(ops, op) })
}

// setWhere returns the fs operations for which a condition holds.
func setWhere(holds func(Operation) bool) (set opSet) {
	for i, o := range scopeNamed(FS).ops {
		if holds(o.name) {
			set |= 1 << i
		}
	}
	return set
}

func (s opSet) list() []Operation {
	var ops []Operation
	for i, o := range scopeNamed(FS).ops {
		if s&(1<<i) != 0 {
			ops = append(ops, o.name)
		}
	}
	return ops
}

// when returns the set if a condition holds, and no operation otherwise.
func (s opSet) when(holds bool) opSet {
	if holds {
		return s
	}
	return 0
}

// String lists the operations for people.
func (s opSet) String() string { return join(s.list()) }

func join[T Operation | Place | PortRange | string](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}
