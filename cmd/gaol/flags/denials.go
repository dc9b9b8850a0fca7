package flags

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"gaol/cmd/gaol/report"
	"gaol/policy"
	"gaol/runtime"
)

// MaxDenials is the most lines about denials that a failed run gets. --json has them all.
// The first ones usually explain the rest, and the program's own message should stay in sight.
const MaxDenials = 5

// Denials returns lines about what permissions denied to a failed program, each with
// the flag or rule that would allow it. A program that succeeded gets none.
func (f *Sandbox) Denials(res *runtime.Result) (lines []string) {
	if res.ExitCode == 0 {
		return nil
	}
	shown := res.Denials
	if len(shown) > MaxDenials {
		shown = shown[:MaxDenials-1]
	}
	external := slices.ContainsFunc(res.Denials, isExternal)
	for _, d := range shown {
		line := denialText(d)
		// Beside a denial of a host outside, a rule for localhost would not help.
		if how := f.howToAllow(d); how != "" && (isExternal(d) || !external || d.Scope != policy.Network) {
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
	return lines[:min(len(lines), MaxDenials)]
}

// isExternal reports whether a denial is about another host.
func isExternal(d runtime.Denial) bool {
	localhost := policy.Permissions{Network: policy.Loopback()}
	return d.Scope == policy.Network && d.Operation != "socket" && !localhost.Decide(d.Scope, d.Operation, d.Target).Allowed
}

// allows reports whether the flags let the program connect to address.
func (f *Sandbox) allows(address string) bool {
	p := f.allowed().Over(policy.Default())
	return p.Decide(policy.Network, "connect", address).Allowed
}

// denialText returns text such as "denied: fs read /etc/passwd (fs.default), 3 times".
func denialText(d runtime.Denial) string {
	text := "denied"
	if d.Source == runtime.SourceStderr {
		text += ", as the program says"
	}
	text += ": " + d.Scope + " " + string(d.Operation)
	if d.Target != "" {
		text += " " + quoteUnsafe(d.Target)
	}
	text += " (" + d.Rule + ")"
	if d.Count > 1 {
		text += fmt.Sprintf(", %d times", d.Count)
	}
	return text
}

// quoteUnsafe quotes a name that comes from the guest if it has characters that a
// terminal might interpret, or blanks at its ends.
func quoteUnsafe(target string) string {
	if quoted := strconv.Quote(target); quoted != `"`+target+`"` || strings.TrimSpace(target) != target {
		return quoted
	}
	return target
}

// howToAllow returns the flag or rule that allows a denied operation, or "" if there is
// none or it cannot be found.
func (f *Sandbox) howToAllow(d runtime.Denial) string {
	if d.Scope == policy.Network {
		return f.howToAllowSocket(d)
	}
	now := f.allowed().Over(policy.Default())
	scope := scopeOf(&now, d.Scope)
	for _, rule := range rulesFor(d) {
		if scope.Default == policy.Allow && len(scope.Rules) == 0 {
			return ""
		}
		then := now.Clone()
		s := scopeOf(&then, d.Scope)
		s.Rules = append(s.Rules, rule)
		if f.canEnforce(then) {
			text, err := report.Line(rule)
			if err != nil {
				return ""
			}
			return "the rule " + strings.TrimSpace(text) + " at the end of " + d.Scope + " in --permissions"
		}
	}
	if d.Scope == policy.FS {
		return ""
	}
	scope.Default, scope.Rules = policy.Allow, nil
	if !f.canEnforce(now) {
		return ""
	}
	return strconv.Quote(d.Scope) + `: "allow" in --permissions`
}

// howToAllowSocket is howToAllow for the network.
func (f *Sandbox) howToAllowSocket(d runtime.Denial) string {
	pattern := networkPattern(d)
	if pattern == "" || f.allows(strings.Replace(pattern, "*", "1", 1)) {
		return ""
	}
	then := f.allowed().Over(policy.Default())
	then.Network.Rules = append(then.Network.Rules, policy.Rule{Mode: policy.Allow, Patterns: []string{pattern}})
	if !f.canEnforce(then) {
		return ""
	}
	if !f.permissions.parsed.Network.IsZero() {
		return "a rule for " + pattern + " in network of --permissions"
	}
	if isExternal(d) {
		return "--allow-net " + strings.TrimSuffix(strings.TrimPrefix(pattern, "tcp://"), ":*")
	}
	return "--allow-net '" + pattern + "'"
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

// canEnforce reports whether gaol run would accept p. Advice that gaol itself refuses would be
// worse than none, so each is checked before it is given. What only this kernel cannot enforce
// is accepted here, because --allow-degraded decides about that.
func (f *Sandbox) canEnforce(p policy.Permissions) bool {
	o := f.Options()
	o.Permissions = p
	plan, _ := runtime.CheckPermissions(o)
	return plan != nil
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
