package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// explain adds a note for each default and each rule: by which mechanism it is enforced.
func (l *lowering) explain() {
	for _, info := range scopes {
		s := *info.of(&l.p)
		l.plan.Notes = append(l.plan.Notes, Note{info.name, -1, l.explainDefault(info.name, cmp.Or(s.Default, Deny))})
		for i, r := range s.Rules {
			var held []string
			for _, text := range r.entries() {
				held = append(held, text+": "+l.enforcement(info.name, r.Mode, text))
			}
			if held == nil {
				held = []string{byScope}
			}
			text := fmt.Sprintf("%s %s: %s", r.Mode, join(info.operations(r)), strings.Join(held, "; "))
			l.plan.Notes = append(l.plan.Notes, Note{info.name, i, text})
		}
	}
}

const byScope = "enforced with the scope as a whole"

func (l *lowering) explainDefault(scope string, mode Mode) string {
	var held string
	switch scope {
	case FS:
		return fmt.Sprintf("%s: /**: %s", mode, join(append([]string{l.enforcedAt(Place{"/", true})}, l.enforcedEverywhere()...)))
	case Network:
		held = l.plan.Net.String()
	case ChildProcess:
		held = l.plan.Spawn.String()
	case Process:
		held = join(those(
			clause{l.plan.NoSignals, "Landlock keeps signals within the run"},
			clause{!l.plan.NoSignals, "signals reach all processes of the jail"},
			clause{l.plan.NoInspect, "/proc shows no other processes"},
			clause{!l.plan.NoInspect, "/proc shows all processes of the jail"},
		)) + "; ptrace is always refused"
	case Env:
		held = "a variable is passed if it is allowed"
	}
	return fmt.Sprintf("%s; with the rules: %s", mode, held)
}

// enforcement describes how a pattern of a rule is enforced.
func (l *lowering) enforcement(scope string, mode Mode, text string) string {
	switch {
	case scope == FS:
		p, _ := placeOf(text)
		held := l.enforcedAt(p)
		if !p.Tree && l.p.Decide(FS, "write", text).Allowed {
			held += ", for an existing file: its folder decides whether it may be created"
		}
		return held
	case scope == Env && mode == Allow:
		return "passed"
	case scope == Env:
		return "never passed"
	case scope == Network && l.plan.Net.Egress != nil:
		end, _ := parseEndpoint(text)
		return end.enforcement()
	}
	return byScope
}

// clause is a part of a note, if it holds.
type clause struct {
	holds bool
	text  string
}

// those returns the clauses that hold.
func those(list ...clause) (held []string) {
	for _, c := range list {
		if c.holds {
			held = append(held, c.text)
		}
	}
	return held
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
func (l *lowering) enforcedAt(p Place) string {
	var granted []Operation
	if i := slices.IndexFunc(l.plan.Grants, func(g Grant) bool { return g.Place == p }); i >= 0 {
		granted = l.plan.Grants[i].Operations
	}
	held := those(
		clause{slices.Contains(l.plan.Hide, p), "hidden by a mount"},
		clause{slices.Contains(l.plan.Show, p), "shown inside a hidden folder"},
		clause{slices.Contains(l.plan.ReadOnly, p), "read-only mount"},
		clause{slices.Contains(l.plan.NoExec, p), "noexec mount"},
		clause{granted != nil, "Landlock grants " + join(granted)},
	)
	switch {
	case held != nil:
		return join(held)
	case !l.plan.Restricts:
		return "restricted by owner and mode only"
	case p.Path == "/":
		return "Landlock grants nothing"
	}
	return "same as its parent folder"
}

// enforcedEverywhere lists the mechanisms that apply to all files.
func (l *lowering) enforcedEverywhere() []string {
	root := Place{"/", true}
	return those(
		clause{l.plan.NoMetadata, "seccomp refuses chmod"},
		clause{l.plan.NoRename, "seccomp refuses rename and link"},
		clause{l.plan.NoWatch, "seccomp refuses inotify"},
		clause{l.plan.Sealed != nil, join(l.plan.Sealed) + " not owned by the guest"},
		clause{l.outer != nil && allowedAt(l.outerPermissions, root)&^allowedAt(l.p, root)&statSet != 0, "stat and readlink as in the runtime"},
	)
}

// String describes which sockets exist and how they are restricted.
func (n Net) String() string {
	switch {
	case !n.Inet:
		return "no sockets but those within the jail"
	case n.Egress != nil:
		return "egress checks external hosts; BPF allows on localhost " + join(those(
			clause{n.Local == nil, "no port"},
			clause{n.Local != nil, "TCP on port " + join(n.Local)},
			clause{n.UDP, "UDP on any port"},
			clause{!n.UDP, "no UDP"},
			clause{n.Host != nil, fmt.Sprintf("and egress connects ports %v of localhost with those of the host", n.Host)},
		))
	}
	return "the loopback device only: " + join(those(
		clause{n.TCP, "TCP listens on any port"},
		clause{n.AnyPort, "TCP connects to any port"},
		clause{n.Ports != nil, fmt.Sprintf("Landlock allows TCP to connect to %v", n.Ports)},
		clause{n.TCP && !n.AnyPort && n.Ports == nil, "Landlock allows TCP to connect to no port"},
		clause{n.UDP, "UDP on any port"},
	))
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
