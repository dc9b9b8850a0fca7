package policy

import "slices"

// writing are the operations of fs that change something.
var writing = []Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}

// Default is what a runtime has that asks for nothing: no network, all else
// within the guest's own world.
func Default() Permissions {
	p := uniform(Allow)
	p.Network = Scope{Default: Deny}
	return p
}

// Strict is nothing but compute.
func Strict() Permissions { return uniform(Deny) }

// Workspace is [Default] with writing only in the folder cwd, an absolute and
// clean path, and below.
func Workspace(cwd string) Permissions {
	p := Default()
	p.FS = Scope{Default: Allow, Rules: []Rule{
		{Mode: Deny, Operations: slices.Clone(writing), Paths: []string{"/**"}},
		{Mode: Allow, Operations: slices.Clone(writing), Paths: []string{Place{cwd, true}.String()}},
	}}
	return p
}

// Open is everything that can be held: [Default] with [Loopback].
func Open() Permissions {
	p := Default()
	p.Network = Loopback()
	return p
}

// Loopback is a network scope that reaches the guest's own servers, TCP and UDP,
// on any port, and nothing else.
func Loopback() Scope {
	return Scope{Default: Deny, Rules: []Rule{
		{Mode: Allow, Operations: []Operation{"fetch", "connect", "listen"}, Patterns: []string{"tcp://localhost:*", "udp://localhost:*"}},
	}}
}

// Preset is permissions that go by a name on the command line.
type Preset struct {
	Name  string
	About string
	Make  func(cwd string) Permissions
}

// Presets are those there are, from the strictest on.
func Presets() []Preset {
	fixed := func(f func() Permissions) func(string) Permissions {
		return func(string) Permissions { return f() }
	}
	return []Preset{
		{"strict", "nothing but compute", fixed(Strict)},
		{"workspace", "files are written below the working directory only; no network", Workspace},
		{"default", "everything within the guest's own world; no network", fixed(Default)},
		{"open", "as default, with servers and clients on localhost", fixed(Open)},
	}
}

func uniform(m Mode) Permissions {
	var p Permissions
	for _, info := range scopes {
		*info.of(&p) = Scope{Default: m}
	}
	return p
}
