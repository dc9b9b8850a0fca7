package permissions

import (
	"math/rand/v2"
	"slices"

	"gaol/policy"
)

// setMaker makes random permissions that can mostly be enforced: a folder's permissions are
// taken back as a whole, and chmod and rename come with writing or not at all.
type setMaker struct{ *rand.Rand }

func pick[T any](m setMaker, from ...T) T { return from[m.IntN(len(from))] }

func (m setMaker) chance(percent int) bool { return m.IntN(100) < percent }

// fuzzFolders are named by rules in addition to the folders where something is tried.
var fuzzFolders = []string{"", "/workspace", "/tmp", "/home/node", "/data", "/srv", "/workspace/none"}

func (m setMaker) place() string {
	folder := pick(m, triedFolders()...)
	switch m.IntN(6) {
	case 0:
		return folder + pick(m, "/f", "/prog")
	case 1:
		return pick(m, fuzzFolders...) + "/**"
	}
	return folder + "/**"
}

func fsRule(mode policy.Mode, ops []policy.Operation, path string) policy.Rule {
	return policy.Rule{Mode: mode, Operations: ops, Paths: []string{path}}
}

var (
	reading  = operations("read stat readlink")
	looking  = operations("read readdir stat readlink")
	using    = operations("read readdir execute stat readlink")
	altering = operations("write create_dir rm rename symlink chmod truncate")
)

func (m setMaker) permissions() policy.Permissions {
	return policy.Permissions{FS: m.fs(), Network: m.network(), ChildProcess: m.programs(), Process: m.processes(), Env: m.variables()}
}

func (m setMaker) fs() policy.Scope {
	switch m.IntN(10) {
	case 0:
		return policy.Scope{Default: pick(m, policy.Allow, policy.Deny)}
	case 1, 2, 3, 4:
		return m.takenBack()
	}
	return m.granted()
}

// takenBack allows everything except some places, and some places within those.
func (m setMaker) takenBack() policy.Scope {
	s := policy.Scope{Default: policy.Allow}
	for _, op := range operations("chmod rename") {
		if m.chance(15) {
			s.Rules = append(s.Rules, fsRule(policy.Deny, []policy.Operation{op}, "/**"))
		}
	}
	plain := s.Rules == nil // otherwise places that are allowed again would have that operation, too
	for range 1 + m.IntN(4) {
		s.Rules = append(s.Rules, fsRule(policy.Deny, pick(m, nil, nil, altering, operations("execute")), m.place()))
		if plain && m.chance(30) {
			s.Rules = append(s.Rules, fsRule(policy.Allow, pick(m, nil, nil, using), m.place()))
		}
	}
	return s
}

// granted denies everything except some places.
func (m setMaker) granted() policy.Scope {
	s := policy.Scope{Default: policy.Deny}
	nowhere := slices.DeleteFunc(operations("rename chmod"), func(policy.Operation) bool { return m.chance(60) })
	kinds := [][]policy.Operation{reading, looking, using, using, m.without(nowhere, append(slices.Clone(using), altering...))}
	if slices.Contains(nowhere, "rename") {
		kinds = append(kinds, m.without(nowhere, operations("read write truncate chmod stat readlink")), m.without(nowhere, operations("read readdir create_dir rm write chmod stat readlink")))
	}
	if m.chance(50) {
		s.Rules = append(s.Rules, fsRule(policy.Allow, pick(m, looking, using), "/**"))
	}
	for range 1 + m.IntN(5) {
		ops, at := pick(m, kinds...), m.place()
		if !isTree(at) { // its folder contains the others
			ops = m.without(operations("readdir create_dir rm rename symlink"), ops)
		}
		s.Rules = append(s.Rules, fsRule(policy.Allow, ops, at))
	}
	for range m.IntN(3) {
		s.Rules = append(s.Rules, fsRule(policy.Deny, pick(m, nil, altering, operations("execute")), m.place()))
	}
	return s
}

func (m setMaker) without(no, ops []policy.Operation) []policy.Operation {
	return slices.DeleteFunc(slices.Clone(ops), func(op policy.Operation) bool { return slices.Contains(no, op) })
}

func isTree(pattern string) bool { return pattern[len(pattern)-1] == '*' }

func (m setMaker) network() policy.Scope {
	listen := policy.Rule{Mode: policy.Allow, Operations: operations("listen"), Patterns: []string{"tcp://localhost:*"}}
	ports := policy.Rule{Mode: policy.Allow, Operations: operations("fetch connect"), Patterns: []string{pick(m, triedPorts...), pick(m, triedPorts...)}}
	datagrams := policy.Rule{Mode: policy.Allow, Operations: operations("fetch connect listen"), Patterns: []string{"udp://localhost:*"}}
	rules := pick(m, nil, nil, policy.Loopback().Rules, []policy.Rule{listen}, []policy.Rule{listen, ports}, []policy.Rule{datagrams}, []policy.Rule{ports, listen, datagrams})
	return policy.Scope{Default: policy.Deny, Rules: slices.Clone(rules)}
}

func (m setMaker) programs() policy.Scope {
	switch m.IntN(4) {
	case 0:
		return policy.Scope{Default: policy.Deny}
	case 1:
		folder := pick(m, triedFolders()...)
		list := []string{node, folder + pick(m, "/**", "/prog"), pick(m, busybox, pick(m, triedFolders()...)+"/**")}
		return allowing(nil, list...)
	}
	return policy.Scope{Default: policy.Allow}
}

func (m setMaker) processes() policy.Scope {
	return pick(m, policy.Scope{Default: policy.Allow}, policy.Scope{Default: policy.Allow}, policy.Scope{Default: policy.Deny},
		policy.Scope{Rules: []policy.Rule{{Mode: policy.Allow, Operations: operations(pick(m, "signal", "inspect"))}}})
}

func (m setMaker) variables() policy.Scope {
	s := policy.Scope{Default: pick(m, policy.Allow, policy.Deny)}
	for range m.IntN(3) {
		s.Rules = append(s.Rules, policy.Rule{Mode: pick(m, policy.Allow, policy.Deny), Patterns: []string{pick(m, "FUZZ_*", "FUZZ_ONE", "*_TWO", "?UZZ_ONE")}})
	}
	return s
}

// narrower removes some of the permissions, as a run may.
func (m setMaker) narrower(p policy.Permissions) policy.Permissions {
	inner := policy.Permissions{Network: pick(m, policy.Scope{}, policy.Scope{}, denied), ChildProcess: pick(m, policy.Scope{}, policy.Scope{}, denied), Env: pick(m, policy.Scope{}, m.variables())}
	if !slices.ContainsFunc(p.Process.Rules, func(r policy.Rule) bool { return r.Mode == policy.Allow }) {
		inner.Process = pick(m, policy.Scope{}, denied)
	}
	inner.FS = p.FS
	inner.FS.Rules = slices.DeleteFunc(slices.Clone(p.FS.Rules), func(r policy.Rule) bool { return r.Mode == policy.Allow && m.chance(40) })
	if p.FS.Default == policy.Allow { // only the runtime's hidden paths have to be taken back
		inner.FS = policy.Scope{Default: policy.Deny, Rules: m.granted().Rules}
		for _, r := range p.FS.Rules {
			if r.Mode == policy.Deny {
				inner.FS.Rules = append(inner.FS.Rules, r)
			}
		}
		inner.FS.Rules = append(inner.FS.Rules, fsRule(policy.Deny, operations("chmod"), "/**"))
	}
	if len(inner.FS.Rules) == 0 {
		inner.FS.Rules = nil
	}
	return inner
}
