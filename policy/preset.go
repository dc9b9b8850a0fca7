package policy

import "slices"

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
