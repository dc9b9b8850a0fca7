package flags

import (
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"gaol/internal/strictjson"
	"gaol/policy"
	"gaol/runtime"
)

// Advice finds flags and rules that allow what permissions have denied to a run.
type Advice struct {
	// Permissions are the run's.
	Permissions policy.Permissions

	// Argument names the flag or the argument that takes permissions. If they exist, AllowNet names the
	// flag for a pattern of the network, HostPort the flag for a port of the host, and
	// UnixSockets the way to allow unix sockets beside a mount.
	Argument, AllowNet, HostPort, UnixSockets string

	// Limit names what raises the limit of a denial.
	Limit func(runtime.Denial) string

	// Accept reports whether permissions could be used. Advice that is refused would be worse
	// than none.
	Accept func(policy.Permissions) bool
}

// For returns the flag, rule or limit that allows a denied operation of a run, or "" if there is none or it cannot be found.
func (a Advice) For(d runtime.Denial) string {
	switch {
	case d.Scope == policy.Limits:
		return a.forLimit(d)
	case d.Rule == "mounts":
		return a.UnixSockets
	case d.Rule == "hostPorts":
		return a.forHostPort(d, "")
	}
	now := a.Permissions.Over(policy.Default())
	scope := scopeOf(&now, d.Scope)
	if d.Scope != policy.Network && scope.Default == policy.Allow && len(scope.Rules) == 0 {
		return ""
	}
	for _, rule := range rulesFor(d, now) {
		then := now.Clone()
		s := scopeOf(&then, d.Scope)
		s.Rules = append(s.Rules, rule)
		if a.Accept(then) {
			return a.ruleText(d, rule)
		}
	}
	if d.Scope == policy.FS || d.Scope == policy.Network {
		return ""
	}
	scope.Default, scope.Rules = policy.Allow, nil
	if !a.Accept(now) {
		return ""
	}
	return strconv.Quote(d.Scope) + `: "allow" in ` + a.Argument
}

// forLimit is advice to raise a limit. A denial of memory means that files in memory used a share of it.
func (a Advice) forLimit(d runtime.Denial) string {
	text := "a higher " + a.Limit(d)
	if d.Operation == "memory" {
		disk := runtime.Denial{Operation: "disk", Rule: "limits.diskBytes"}
		text += ", or a " + a.Limit(disk) + " above 64 MiB and a quarter of the memory, which keeps files on disk"
	}
	return text
}

// ruleText is advice to add a rule to the scope of a denial, or to use the flag for its pattern.
func (a Advice) ruleText(d runtime.Denial, rule policy.Rule) string {
	switch {
	case d.Scope != policy.Network || a.AllowNet == "":
		text, err := strictjson.Encode(rule, "")
		if err != nil {
			return ""
		}
		return "the rule " + strings.TrimSpace(string(text)) + " at the end of " + d.Scope + " in " + a.Argument
	case isLocal(d):
		return a.forHostPort(d, a.AllowNet+" '"+rule.Patterns[0]+"'")
	}
	address := strings.TrimSuffix(strings.TrimPrefix(rule.Patterns[0], "tcp://"), ":*")
	if strings.HasPrefix(address, "[") { // an IPv6 address, in which a shell would look for the names of files
		address = "'" + address + "'"
	}
	return a.AllowNet + " " + address
}

// forHostPort is advice to lead a port of localhost to the host, after other advice or alone, or "".
func (a Advice) forHostPort(d runtime.Denial, other string) string {
	if a.HostPort == "" || d.Operation != "connect" {
		return other
	}
	if other != "" {
		other += ", or "
	}
	return other + a.HostPort + " " + portOf(d.Target) + " if the server runs on this machine"
}

// portOf returns what follows the last colon.
func portOf(target string) string { return target[strings.LastIndexByte(target, ':')+1:] }

// networkPattern returns the pattern of a rule that allows a denied use of the network, or
// "" if there is none: the reason may be a limit, or a name that the guest sent. The purpose of a refused
// socket is not known.
func networkPattern(d runtime.Denial) string {
	name, isName := strings.CutPrefix(d.Target, "dns://")
	switch {
	case strings.HasPrefix(d.Rule, "limits."), d.Operation == "socket":
		return ""
	case d.Operation == "dns" && isName && policy.ValidName(name):
		return "tcp://" + name + ":*"
	case isLocal(d) && strings.HasPrefix(d.Target, "udp://"):
		return "udp://localhost:*"
	case isLocal(d):
		return "tcp://localhost:*"
	case d.Operation != "connect":
		return ""
	case d.Address != "":
		return "tcp://" + net.JoinHostPort(d.Address, portOf(d.Target))
	}
	return d.Target
}

// scopeOf returns the scope that a denial names.
func scopeOf(p *policy.Permissions, name string) *policy.Scope {
	return map[string]*policy.Scope{
		policy.FS: &p.FS, policy.Network: &p.Network, policy.ChildProcess: &p.ChildProcess, policy.Process: &p.Process, policy.Env: &p.Env,
	}[name]
}

// rulesFor returns rules that allow a denied operation, the narrowest first. Some of them
// cannot be enforced with all other permissions.
func rulesFor(d runtime.Denial, now policy.Permissions) []policy.Rule {
	if d.Scope == policy.Network {
		pattern := networkPattern(d)
		if pattern == "" || now.Decide(policy.Network, "connect", strings.Replace(pattern, "*", "1", 1)).Allowed {
			return nil
		}
		return []policy.Rule{{Mode: policy.Allow, Patterns: []string{pattern}}}
	}
	target := path.Clean(d.Target)
	if !path.IsAbs(target) || QuoteUnsafe(target) != target || strings.ContainsAny(target, "*?") {
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

// MaxDenials is the most lines about denials that a failed run gets. --json has them all.
// The first ones usually explain the rest, and the program's own message should stay in sight.
const MaxDenials = 5

// Denials returns lines about what permissions denied to a failed program, each with the flag or rule
// that would allow it if the command has such flags. A program that succeeded gets none.
func (f *Sandbox) Denials(res *runtime.Result) (lines []string) {
	if res.ExitCode == 0 {
		return nil
	}
	shown := res.Denials
	if len(shown) > MaxDenials {
		shown = shown[:MaxDenials-1]
	}
	for _, d := range shown {
		line := DenialText(d)
		if f.Set.Lookup("permissions") != nil {
			if how := f.advice().For(d); how != "" {
				line += "; allow with " + how
			}
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

// isLocal reports whether a denial is about localhost.
func isLocal(d runtime.Denial) bool {
	localhost := policy.Permissions{Network: policy.Loopback()}
	return d.Address == "" && localhost.Decide(d.Scope, d.Operation, d.Target).Allowed
}

// DenialText returns text such as "denied: fs read /etc/passwd (fs.default), 3 times", or
// "limit reached: disk 64 MiB (limits.diskBytes)".
func DenialText(d runtime.Denial) string {
	text, what := "denied", d.Scope+" "+string(d.Operation)
	if d.Scope == policy.Limits {
		text, what = "limit reached", string(d.Operation)
	}
	if d.Source == runtime.SourceStderr {
		text += ", reported by the program"
	}
	text += ": " + what
	if d.Target != "" {
		text += " " + QuoteUnsafe(d.Target)
	}
	if d.Address != "" {
		text += " resolves to " + QuoteUnsafe(d.Address) + ", a private address or one of the host's own"
	}
	text += " (" + d.Rule + ")"
	if d.Count > 1 {
		text += fmt.Sprintf(", %d times", d.Count)
	}
	return text
}

// QuoteUnsafe quotes a name that comes from a guest or an image if it has characters that a
// terminal might interpret, or blanks at its ends.
func QuoteUnsafe(target string) string {
	if quoted := strconv.Quote(target); quoted != `"`+target+`"` || strings.TrimSpace(target) != target {
		return quoted
	}
	return target
}

// advice returns advice about the flags.
func (f *Sandbox) advice() Advice {
	a := Advice{
		Permissions: f.allowed(), Argument: "--permissions", Accept: f.canEnforce,
		Limit:    func(d runtime.Denial) string { return "--" + string(d.Operation) },
		HostPort: "--host-port", UnixSockets: "--unix-sockets, or mount the folder copy-on-write (SOURCE:TARGET:cow)",
	}
	if f.permissions.parsed.Network.IsZero() {
		a.AllowNet = "--allow-net"
	}
	return a
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
