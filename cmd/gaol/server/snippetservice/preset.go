package snippetservice

import (
	"slices"

	"gaol/cmd/gaol/server/settings"
	"gaol/policy"
)

// The permission presets.
const (
	presetStrict  = "strict"
	presetDefault = "default"
	presetPublic  = "public"
)

// publicNetwork is the network of presetPublic: see snippets.Options.
const publicNetwork = "public"

// presetNames are the presets that the settings allow, the strictest first.
func presetNames(set *settings.Settings) []string {
	list := []string{presetStrict, presetDefault}
	if set.Trusted || set.Snippets.Network == publicNetwork {
		list = append(list, presetPublic)
	}
	return list
}

// restrict returns the permissions of a preset, which are at most those of base.
func restrict(base policy.Permissions, preset string) (p policy.Permissions, network string) {
	p = base.Clone()
	switch preset {
	case presetStrict:
		// The last rule decides.
		p.FS.Rules = append(slices.Clone(p.FS.Rules), policy.Rule{Mode: policy.Deny, Operations: writing, Paths: []string{"/**"}})
		p.ChildProcess = policy.Scope{Default: policy.Deny}
	case presetPublic:
		network = publicNetwork
	}
	return p, network
}

// writing are the operations that change files.
var writing = []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
