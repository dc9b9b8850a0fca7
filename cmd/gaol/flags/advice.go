package flags

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"gaol/cmd/gaol/report"
	"gaol/policy"
	"gaol/runtime"
)

// Advice finds flags and rules that allow what permissions have denied to a run.
type Advice struct {
	// Permissions are the run's.
	Permissions policy.Permissions

	// Argument names the flag or the argument that takes permissions, and AllowNet the flag that
	// takes a pattern of the network, if there is one.
	Argument, AllowNet string

	// Accept reports whether permissions could be used. Advice that is refused would be worse
	// than none.
	Accept func(policy.Permissions) bool
}

// For returns, for each denied operation of a run, the flag or rule that allows it, or "" if there is
// none or it cannot be found.
func (a Advice) For(list []runtime.Denial) []string {
	advice := make([]string, len(list))
	external := slices.ContainsFunc(list, isExternal)
	for i, d := range list {
		// Beside a denial of a host outside, a rule for localhost would not help.
		if isExternal(d) || !external || d.Scope != policy.Network {
			advice[i] = a.forOne(d)
		}
	}
	return advice
}

func (a Advice) forOne(d runtime.Denial) string {
	if d.Scope == policy.Network {
		return a.forSocket(d)
	}
	now := a.Permissions.Over(policy.Default())
	scope := scopeOf(&now, d.Scope)
	for _, rule := range rulesFor(d) {
		if scope.Default == policy.Allow && len(scope.Rules) == 0 {
			return ""
		}
		then := now.Clone()
		s := scopeOf(&then, d.Scope)
		s.Rules = append(s.Rules, rule)
		if a.Accept(then) {
			text, err := report.Line(rule)
			if err != nil {
				return ""
			}
			return "the rule " + strings.TrimSpace(text) + " at the end of " + d.Scope + " in " + a.Argument
		}
	}
	if d.Scope == policy.FS {
		return ""
	}
	scope.Default, scope.Rules = policy.Allow, nil
	if !a.Accept(now) {
		return ""
	}
	return strconv.Quote(d.Scope) + `: "allow" in ` + a.Argument
}

// forSocket is For for the network.
func (a Advice) forSocket(d runtime.Denial) string {
	pattern := networkPattern(d)
	then := a.Permissions.Over(policy.Default())
	if pattern == "" || then.Decide(policy.Network, "connect", strings.Replace(pattern, "*", "1", 1)).Allowed {
		return ""
	}
	then.Network.Rules = append(then.Network.Rules, policy.Rule{Mode: policy.Allow, Patterns: []string{pattern}})
	switch {
	case !a.Accept(then):
		return ""
	case a.AllowNet == "":
		return "a rule for " + pattern + " in network of " + a.Argument
	case isExternal(d):
		return a.AllowNet + " " + strings.TrimSuffix(strings.TrimPrefix(pattern, "tcp://"), ":*")
	}
	return a.AllowNet + " '" + pattern + "'"
}

// networkPattern returns the pattern of a rule that allows a denied use of the network, or
// "" if there is none: the reason may be a limit, or a name that the guest sent.
func networkPattern(d runtime.Denial) string {
	name, isName := strings.CutPrefix(d.Target, "dns://")
	switch {
	case strings.HasPrefix(d.Rule, "limits."):
		return ""
	case d.Operation == "socket" && strings.HasSuffix(d.Target, "SOCK_STREAM"):
		return "tcp://localhost:*"
	case d.Operation == "socket" && strings.HasSuffix(d.Target, "SOCK_DGRAM"):
		return "udp://localhost:*"
	case d.Operation == "dns" && isName && policy.ValidName(name):
		return "tcp://" + name + ":*"
	case d.Operation != "connect":
		return ""
	case isExternal(d):
		return d.Target
	}
	return "tcp://localhost:*"
}

// scopeOf returns the scope that a denial names.
func scopeOf(p *policy.Permissions, name string) *policy.Scope {
	return map[string]*policy.Scope{
		policy.FS: &p.FS, policy.Network: &p.Network, policy.ChildProcess: &p.ChildProcess, policy.Process: &p.Process, policy.Env: &p.Env,
	}[name]
}

// rulesFor returns rules that allow a denied operation, the narrowest first. Some of them
// cannot be enforced with all other permissions.
func rulesFor(d runtime.Denial) []policy.Rule {
	target := path.Clean(d.Target)
	if !path.IsAbs(target) || quoteUnsafe(target) != target || strings.ContainsAny(target, "*?") {
		return nil
	}
	if d.Scope == policy.ChildProcess {
		return []policy.Rule{{Mode: policy.Allow, Patterns: []string{target}}}
	}
	if d.Scope != policy.FS {
		return nil
	}
	allow := func(p policy.Place, ops ...policy.Operation) policy.Rule {
		return policy.Rule{Mode: policy.Allow, Operations: ops, Paths: []string{p.String()}}
	}
	file, folder := policy.Place{Path: target}, policy.Place{Path: path.Dir(target), Tree: true}
	switch d.Operation {
	case "read", "stat", "readlink", "execute":
		return []policy.Rule{allow(file, d.Operation), allow(folder, d.Operation)}
	case "readdir":
		file.Tree = true
		return []policy.Rule{allow(file, "read", "readdir")}
	}
	if d.Source == runtime.SourceAudit {
		// Audit records name the folder. For a write they may name the file
		// instead, so that no rule can be suggested.
		if d.Operation == "write" || d.Operation == "truncate" {
			return nil
		}
		folder.Path = target
	}
	// A file that may not exist yet takes a rule for its folder. Some operations, such
	// as chmod and rename, can only be allowed together with the others.
	return []policy.Rule{allow(folder, d.Operation), allow(folder, "write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate")}
}
