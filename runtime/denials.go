package runtime

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"gaol/jail/seccomp/notify"
	"gaol/policy"
)

// Denial is an operation that permissions kept a run from. What it says of the target
// is the guest's word: text to be shown, not to be trusted.
type Denial struct {
	Scope     string           `json:"scope"`
	Operation policy.Operation `json:"operation"` // "socket" for one that neither connects nor listens yet

	// Target is a path, or what kind of socket it was. Empty: there is none, as for
	// a fork, or the kernel did not tell. At most 256 bytes of valid UTF-8.
	Target string `json:"target"`

	// Rule is what denied it, "fs.rules[2]" or "fs.default"; "mounts" is Options.UnixSockets,
	// which runs with mounts lack.
	Rule string `json:"rule"`

	Count  int64        `json:"count"` // how often
	Source DenialSource `json:"source"`
}

// DenialSource is where gaol knows of a denial from.
type DenialSource string

const (
	// SourceSeccomp is the system call filter, which asked this process. All of the
	// calls that it refuses by permissions are told.
	SourceSeccomp DenialSource = "seccomp"

	// SourceAudit is the kernel's audit, with Options.AuditDenials. It may lose records
	// when a machine has many.
	SourceAudit DenialSource = "audit"

	// SourceStderr is a hint: the program failed, and the last that it printed was an
	// error of Node's for something that its permissions deny.
	SourceStderr DenialSource = "stderr"
)

const (
	mostDenials = 64
	maxTarget   = 256
)

// denials takes in those of one run.
type denials struct {
	permissions policy.Permissions
	dir         string // where the run started

	mu   sync.Mutex
	seen []Denial
	more bool
	feed *feed // nil while nobody follows
}

func (t *task) newDenials(g *guard) *denials {
	return &denials{permissions: g.permissions, dir: string(t.dir)}
}

// add counts one. Its rule is filled in.
func (d *denials) add(n Denial) {
	n.Target = shown(n.Target)
	n.Rule = d.rule(n)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.seen {
		old := &d.seen[i]
		if old.Scope == n.Scope && old.Operation == n.Operation && old.Target == n.Target && old.Source == n.Source {
			old.Count++
			return
		}
	}
	if len(d.seen) == mostDenials {
		d.more = true
		return
	}
	n.Count = 1
	d.seen = append(d.seen, n)
	if d.feed != nil {
		d.feed.denial(n)
	}
}

// follow has a feed told of all that differ: each once.
func (d *denials) follow(f *feed) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.seen {
		n.Count = 1
		f.denial(n)
	}
	d.feed = f
}

// rule names what denies it.
func (d *denials) rule(n Denial) string {
	op, target := n.Operation, n.Target
	switch {
	case op == "socket" && strings.HasPrefix(target, unixFamily):
		return "mounts"
	case op == "socket": // any use of it is denied, and that of localhost by the rule that matters
		op, target = "connect", "tcp://localhost:1"
		if strings.HasSuffix(n.Target, "SOCK_DGRAM") {
			target = "udp://localhost:1"
		}
	case n.Scope == policy.FS || n.Scope == policy.ChildProcess:
		target = clean(target)
	}
	if rule := d.permissions.Decide(n.Scope, op, target).Rule; rule >= 0 {
		return n.Scope + ".rules[" + strconv.Itoa(rule) + "]"
	}
	return n.Scope + ".default"
}

// clean is a path that permissions can decide on, of one that a guest gave.
func clean(target string) string {
	if !path.IsAbs(target) {
		return "/"
	}
	return path.Clean(target)
}

func shown(target string) string {
	target = strings.ToValidUTF8(target, "\uFFFD")
	for len(target) > maxTarget {
		_, size := utf8.DecodeLastRuneInString(target)
		target = target[:len(target)-size]
	}
	return target
}

// list is what there is after the run's end. stderrTail is the end of a standard error
// that is longer than what was captured.
func (d *denials) list(res *Result, stderrTail []byte) ([]Denial, bool) {
	if n, ok := d.hint(res.ExitCode, slices.Concat(res.Stderr, stderrTail)); ok && !d.told(n) {
		d.add(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen, d.more
}

// refused takes a call that the filter refused.
func (d *denials) refused(c notify.Call) {
	n := Denial{Target: c.Text, Source: SourceSeccomp}
	switch c.Label {
	case "spawn":
		n.Scope, n.Operation = policy.ChildProcess, "spawn"
	case "signal":
		n.Scope, n.Operation = policy.Process, "signal"
	case "chmod", "rename", "readdir":
		n.Scope, n.Operation = policy.FS, policy.Operation(c.Label)
	case "fast open":
		n.Scope, n.Operation = policy.Network, "connect"
	default:
		n.Scope, n.Operation, n.Target = policy.Network, "socket", socketKind(c)
	}
	d.add(n)
}

// now is what there is so far.
func (d *denials) now() []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

// since is what has come after now returned before.
func (d *denials) since(before []Denial) (list []Denial, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, n := range d.seen {
		if i < len(before) {
			n.Count -= before[i].Count
		}
		if n.Count > 0 {
			list = append(list, n)
		}
	}
	return list, d.more
}
