package runtime

import (
	"gaol/policy"
	"gaol/runtime/internal/enforce"
)

// Denial is an operation that permissions denied to a run. Its target is the guest's text,
// for display only.
type Denial struct {
	Scope     string           `json:"scope"`
	Operation policy.Operation `json:"operation"` // "socket" for one that neither connects nor listens yet

	// Target is a path, or the kind of a socket. It is empty if the operation has none, such
	// as a fork, or if the kernel did not report it. It has at most 256 bytes of valid UTF-8.
	Target string `json:"target"`

	// Rule is the rule that denied it, such as "fs.rules[2]" or "fs.default". "mounts" stands
	// for a missing Options.UnixSockets in a runtime with mounts.
	Rule string `json:"rule"`

	Count  int64        `json:"count"` // how often
	Source DenialSource `json:"source"`
}

// DenialSource says how gaol learned of a denial.
type DenialSource string

const (
	// SourceSeccomp is the system call filter, which asks this process. It reports every
	// call that it refuses because of permissions.
	SourceSeccomp DenialSource = "seccomp"

	// SourceAudit is the kernel's audit log, with Options.AuditDenials. The kernel may drop
	// records when it has many.
	SourceAudit DenialSource = "audit"

	// SourceStderr is a hint: the program failed, and the error that Node printed last is
	// about something that its permissions deny.
	SourceStderr DenialSource = "stderr"
)

func newDenial(d enforce.Denial) Denial {
	return Denial{d.Scope, d.Operation, d.Target, d.Rule, d.Count, DenialSource(d.Source)}
}

func newDenials(list []enforce.Denial) []Denial {
	var out []Denial
	for _, d := range list {
		out = append(out, newDenial(d))
	}
	return out
}
