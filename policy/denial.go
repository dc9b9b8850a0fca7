package policy

// Denial is an operation that permissions denied to a run, or a limit that a failed run has reached. Its target is
// the guest's text, for display only.
type Denial struct {
	// Scope is a scope of permissions. For a limit it is "limits", Operation is "disk", "files" or "memory", Target
	// describes the limit, and Rule is its field in requests, such as "limits.diskBytes".
	Scope     string    `json:"scope"`
	Operation Operation `json:"operation"` // "socket" if the denied socket neither connects nor listens yet

	// Target is a path, or the kind of a socket. It is empty if the operation has none, such
	// as a fork, or if the kernel did not report it. It has at most 256 bytes of valid UTF-8.
	Target string `json:"target"`

	// Address is set if the rules allow the name in Target and refuse the address that it
	// resolves to, such as a private one, which a rule must name.
	Address string `json:"address,omitempty"`

	// Rule is the rule that denied it, such as "fs.rules[2]" or "fs.default". Other names stand for options: "mounts" for
	// named unix sockets, which a sandbox with mounts lacks by default; "limits.connections" and similar for limits of the
	// network; "quota." and a name for a quota; "hostPorts" for ports of the host: the program failed because nothing
	// in the sandbox listens on the port of localhost.
	Rule string `json:"rule"`

	Count  int64        `json:"count"` // how often
	Source DenialSource `json:"source"`
}

// Limits is the scope of denials for limits.
const Limits = "limits"

// DenialSource is the mechanism that reported a denial.
type DenialSource string

const (
	// SourceSeccomp is the system call filter, which asks gaol. It reports every
	// call that it refuses because of permissions.
	SourceSeccomp DenialSource = "seccomp"

	// SourceEgress is the proxy for egress. It reports every connection and look-up that it
	// refuses.
	SourceEgress DenialSource = "egress"

	// SourceAudit is the kernel's audit log, if it is read. The kernel may drop
	// records when it has many.
	SourceAudit DenialSource = "audit"

	// SourceLimits is the state of the sandbox after the end of a run that failed.
	SourceLimits DenialSource = "limits"

	// SourceStderr is a hint: the program failed, and the error that Node printed last is
	// about something that its permissions deny, or about a lack of space.
	SourceStderr DenialSource = "stderr"
)
