package policy

import (
	"fmt"
	"slices"
	"strings"
)

// explain adds a note for each default and each rule: by which mechanism it is enforced.
func (l *lowering) explain() {
	for _, info := range scopes {
		s := *info.of(&l.p)
		l.plan.Notes = append(l.plan.Notes, Note{info.name, -1, l.explainDefault(info.name, s)})
		for i, r := range s.Rules {
			text := fmt.Sprintf("%s %s: %s", r.Mode, join(info.operations(r)), l.explainRule(&info, r))
			l.plan.Notes = append(l.plan.Notes, Note{info.name, i, text})
		}
	}
}

func (l *lowering) explainDefault(scope string, s Scope) string {
	mode := s.Default
	if mode == "" {
		mode = Deny
	}
	switch scope {
	case FS:
		return fmt.Sprintf("%s: /**: %s", mode, strings.Join(append(l.enforcedAt(Place{"/", true}), l.enforcedEverywhere()...), "; "))
	case Network:
		return fmt.Sprintf("%s; with the rules: %s", mode, l.plan.Net)
	case ChildProcess:
		return fmt.Sprintf("%s; with the rules: %s", mode, l.plan.Spawn)
	case Process:
		return fmt.Sprintf("%s; with the rules: %s", mode, l.explainProcess())
	}
	if mode == Allow {
		return "allow: passed unless a rule denies it"
	}
	return "deny: never passed unless a rule allows it"
}

func (l *lowering) explainProcess() string {
	signals, inspect := "signals reach all processes of the jail", "/proc shows all processes of the jail; ptrace is always refused"
	if l.plan.NoSignals {
		signals = "Landlock keeps signals within the run"
	}
	if l.plan.NoInspect {
		inspect = "/proc shows no other processes; ptrace is always refused"
	}
	return signals + ", " + inspect
}

func (l *lowering) explainRule(info *scopeInfo, r Rule) string {
	switch info.name {
	case FS:
		var held []string
		for _, text := range r.Paths {
			p, _ := placeOf(text)
			here := l.enforcedAt(p)
			if !p.Tree && l.p.Decide(FS, "write", text).Allowed {
				here = append(here, "for an existing file: its folder decides whether it may be created")
			}
			held = append(held, text+": "+strings.Join(here, ", "))
		}
		return strings.Join(held, "; ")
	case Env:
		if r.Mode == Allow {
			return strings.Join(r.Patterns, ", ") + ": passed"
		}
		return strings.Join(r.Patterns, ", ") + ": never passed"
	case Network:
		if l.plan.Net.Egress != nil {
			var held []string
			for _, text := range r.Patterns {
				end, _ := parseEndpoint(text)
				held = append(held, text+": "+end.enforcement())
			}
			return strings.Join(held, "; ")
		}
	}
	return strings.Join(slices.Concat(r.Patterns, []string{"enforced with the scope as a whole"}), ", ")
}

// enforcement describes how a network pattern is enforced in a jail with egress.
func (p endpoint) enforcement() string {
	switch {
	case p.proto == "dns":
		return "the jail's resolver"
	case p.proto == "udp":
		return "BPF, on localhost only"
	case p.isLocal():
		return "BPF, by port"
	case p.net.IsValid():
		return "egress, by the address and port of each connection"
	case p.host == "*":
		return "egress, by port; addresses that are not public need a rule that names them; on localhost BPF"
	}
	return "egress, by the look-up, the port, and the name in TLS or HTTP"
}

// enforcedAt lists the mechanisms that enforce the policy at a place.
func (l *lowering) enforcedAt(p Place) []string {
	var held []string
	mounts := []struct {
		places []Place
		text   string
	}{
		{l.plan.Hide, "hidden by a mount"},
		{l.plan.Show, "shown inside a hidden folder"},
		{l.plan.ReadOnly, "read-only mount"},
		{l.plan.NoExec, "noexec mount"},
	}
	for _, m := range mounts {
		if slices.Contains(m.places, p) {
			held = append(held, m.text)
		}
	}
	for _, g := range l.plan.Grants {
		if g.Place == p {
			held = append(held, "Landlock grants "+join(g.Operations))
		}
	}
	switch {
	case held != nil:
	case !l.plan.Restricts:
		held = append(held, "restricted by owner and mode only")
	case p.Path == "/":
		held = append(held, "Landlock grants nothing")
	default:
		held = append(held, "same as its parent folder")
	}
	return held
}

// enforcedEverywhere lists the mechanisms that apply to all files.
func (l *lowering) enforcedEverywhere() []string {
	var held []string
	if l.plan.NoMetadata {
		held = append(held, "seccomp refuses chmod")
	}
	if l.plan.NoRename {
		held = append(held, "seccomp refuses rename and link")
	}
	if l.plan.NoWatch {
		held = append(held, "seccomp refuses inotify")
	}
	if l.plan.Sealed != nil {
		held = append(held, strings.Join(l.plan.Sealed, ", ")+" not owned by the guest")
	}
	if l.outer != nil && allowedAt(l.outerPermissions, Place{"/", true})&^allowedAt(l.p, Place{"/", true})&statSet != 0 {
		held = append(held, "stat and readlink as in the runtime")
	}
	return held
}

// String describes which sockets exist and how they are restricted.
func (n Net) String() string {
	if !n.Inet {
		return "no sockets but those within the jail"
	}
	if n.Egress != nil {
		return n.describeEgress()
	}
	var on []string
	if n.TCP {
		on = append(on, "TCP listens on any port")
	}
	switch {
	case n.AnyPort:
		on = append(on, "TCP connects to any port")
	case n.Ports != nil:
		on = append(on, fmt.Sprintf("Landlock allows TCP to connect to %v", n.Ports))
	case n.TCP:
		on = append(on, "Landlock allows TCP to connect to no port")
	}
	if n.UDP {
		on = append(on, "UDP on any port")
	}
	return "the loopback device only: " + strings.Join(on, ", ")
}

func (n Net) describeEgress() string {
	tcp, udp := "no port", "no UDP"
	if n.Local != nil {
		list := make([]string, len(n.Local))
		for i, r := range n.Local {
			list[i] = r.String()
		}
		tcp = "TCP on port " + strings.Join(list, ", ")
	}
	if n.UDP {
		udp = "UDP on any port"
	}
	text := fmt.Sprintf("egress checks external hosts; BPF allows on localhost %s, %s", tcp, udp)
	if n.Host != nil {
		text += fmt.Sprintf("; egress connects ports %v of localhost with those of the host", n.Host)
	}
	return text
}

// String formats a range as rules do.
func (r PortRange) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// String describes which programs may start and how that is enforced.
func (s Spawn) String() string {
	switch {
	case s.Denied:
		return "seccomp refuses new programs and processes"
	case s.Only == nil:
		return "any program that fs allows to execute"
	}
	return "Landlock grants execute on nothing but " + join(s.Only)
}
