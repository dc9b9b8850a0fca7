package main

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gaol/policy"
	"gaol/runtime"
)

// mostDenied is how many lines about denials a failed run gets. --json has them all.
const mostDenied = 5

// denied gives the lines about what permissions kept a failed program from. One that
// did well has no need of what it was denied.
func (f *runFlags) denied(res *runtime.Result) []string {
	if res.ExitCode == 0 {
		return nil
	}
	shown := res.Denials
	if len(shown) > mostDenied {
		shown = shown[:mostDenied-1]
	}
	var lines []string
	outside := slices.ContainsFunc(res.Denials, isOutside)
	for _, d := range shown {
		line := denial(d)
		switch how := f.allowing(d); {
		case isOutside(d):
			line += f.noOutside()
		case how != "" && !(outside && d.Scope == policy.Network): // a rule for localhost would not help
			line += "; allow with " + how
		}
		lines = append(lines, line)
	}
	switch more := len(res.Denials) - len(shown); {
	case res.Truncated.Denials:
		lines = append(lines, fmt.Sprintf("denied: more than %d more; --json lists %d", more, len(res.Denials)))
	case more > 0:
		lines = append(lines, fmt.Sprintf("denied: %d more; --json lists them", more))
	}
	return lines[:min(len(lines), mostDenied)]
}

// isOutside reports whether a denial is about a host outside, which no permission reaches yet.
func isOutside(d runtime.Denial) bool {
	localhost := policy.Permissions{Network: policy.Loopback()}
	return d.Scope == policy.Network && d.Operation != "socket" && !localhost.Decide(d.Scope, d.Operation, d.Target).Allowed
}

// noOutside ends the line about a host outside.
func (f *runFlags) noOutside() string {
	const text = "hosts outside can't be reached by any permission yet"
	now := f.permit().Over(policy.Default())
	if now.Decide(policy.Network, "connect", "tcp://localhost:1").Allowed {
		return "; " + text
	}
	return "; the network is denied: --allow-net 'tcp://localhost:*' allows localhost, and " + text
}

// denial reads "denied: fs read /etc/passwd (fs.default), 3 times".
func denial(d runtime.Denial) string {
	text := "denied"
	if d.Source == runtime.SourceStderr {
		text += ", as the program says"
	}
	text += ": " + d.Scope + " " + string(d.Operation)
	if d.Target != "" {
		text += " " + printable(d.Target)
	}
	text += " (" + d.Rule + ")"
	if d.Count > 1 {
		text += fmt.Sprintf(", %d times", d.Count)
	}
	return text
}

// printable quotes what a guest has named where it would do anything to a terminal.
func printable(target string) string {
	if quoted := strconv.Quote(target); quoted != `"`+target+`"` || strings.TrimSpace(target) != target {
		return quoted
	}
	return target
}

// allowing says which flag or rule allows what was denied; "" if none does, or if this
// can't be told.
func (f *runFlags) allowing(d runtime.Denial) string {
	if d.Scope == policy.Network {
		return f.allowingNet(d)
	}
	now := f.permit().Over(policy.Default())
	for _, rule := range rulesFor(d) {
		s := scopeOf(&now, d.Scope)
		if s.Default == policy.Allow && len(s.Rules) == 0 {
			return ""
		}
		then := now.Clone()
		s = scopeOf(&then, d.Scope)
		s.Rules = append(s.Rules, rule)
		if f.holds(then) {
			text, err := marshalLine(rule)
			if err != nil {
				return ""
			}
			return "the rule " + strings.TrimSpace(string(text)) + " at the end of " + d.Scope + " in --permissions"
		}
	}
	if d.Scope == policy.FS {
		return ""
	}
	scopeOf(&now, d.Scope).Default, scopeOf(&now, d.Scope).Rules = policy.Allow, nil
	if !f.holds(now) {
		return ""
	}
	return strconv.Quote(d.Scope) + `: "allow" in --permissions`
}

// allowingNet is allowing for sockets, which rules for localhost allow, or nothing.
func (f *runFlags) allowingNet(d runtime.Denial) string {
	pattern, ok := map[string]string{
		"AF_INET SOCK_STREAM": "tcp://localhost:*", "AF_INET6 SOCK_STREAM": "tcp://localhost:*",
		"AF_INET SOCK_DGRAM": "udp://localhost:*", "AF_INET6 SOCK_DGRAM": "udp://localhost:*",
	}[d.Target]
	reachable := policy.Permissions{Network: policy.Loopback()}
	if d.Operation == "connect" && reachable.Decide(policy.Network, "connect", d.Target).Allowed {
		pattern, ok = "tcp://localhost:*", true
	}
	resource := strings.Replace(pattern, "*", "1", 1)
	if !ok || f.permit().Over(policy.Default()).Decide(policy.Network, "connect", resource).Allowed {
		return ""
	}
	if f.granted.said.Network.IsZero() {
		return "--allow-net '" + pattern + "'"
	}
	return "a rule for " + pattern + " in network of --permissions"
}

// holds reports whether gaol run would take p.
func (f *runFlags) holds(p policy.Permissions) bool {
	o := f.options()
	o.Permissions = p
	plan, _ := runtime.CheckPermissions(o)
	return plan != nil
}

func scopeOf(p *policy.Permissions, name string) *policy.Scope {
	switch name {
	case policy.FS:
		return &p.FS
	case policy.ChildProcess:
		return &p.ChildProcess
	case policy.Process:
		return &p.Process
	case policy.Env:
		return &p.Env
	}
	return &p.Network
}

// rulesFor are rules that allow what was denied, the narrowest first. Not all can be
// held with any permissions.
func rulesFor(d runtime.Denial) []policy.Rule {
	target := path.Clean(d.Target)
	if !path.IsAbs(target) || printable(target) != target || strings.ContainsAny(target, "*?") {
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
	if d.Source == runtime.SourceAudit { // which names the folder, but the file of a write
		if d.Operation == "write" || d.Operation == "truncate" {
			return nil
		}
		folder.Path = target
	}
	// Of files and folders that may not be there yet, the folder decides; and chmod and
	// rename go with the others.
	return []policy.Rule{allow(folder, d.Operation), allow(folder, slices.Clone(changes)...)}
}

// changes are the operations of fs that change something: where one can't be allowed by
// itself, they can all.
var changes = []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
