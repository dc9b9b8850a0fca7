package flags

import (
	"fmt"
	"strconv"
	"strings"

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
	advice := f.advice().For(res.Denials)
	for i, d := range shown {
		line := DenialText(d)
		if how := advice[i]; how != "" {
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

// isLocal reports whether a denial is about localhost.
func isLocal(d runtime.Denial) bool {
	localhost := policy.Permissions{Network: policy.Loopback()}
	return d.Address == "" && localhost.Decide(d.Scope, d.Operation, d.Target).Allowed
}

// DenialText returns text such as "denied: fs read /etc/passwd (fs.default), 3 times".
func DenialText(d runtime.Denial) string {
	text := "denied"
	if d.Source == runtime.SourceStderr {
		text += ", as the program says"
	}
	text += ": " + d.Scope + " " + string(d.Operation)
	if d.Target != "" {
		text += " " + quoteUnsafe(d.Target)
	}
	if d.Address != "" {
		text += " resolves to " + quoteUnsafe(d.Address) + ", a private address or one of the host's own"
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

// advice returns advice about the flags.
func (f *Sandbox) advice() Advice {
	a := Advice{
		Permissions: f.allowed(), Argument: "--permissions", Accept: f.canEnforce,
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
