package enforce

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp/notify"
	"gaol/policy"
)

// Denial is an operation that permissions denied. Its target is the guest's text: at most
// 256 bytes of valid UTF-8, and not to be trusted.
type Denial struct {
	Scope     string
	Operation policy.Operation
	Target    string
	Rule      string // "fs.rules[2]", "fs.default", or "mounts" for Options.UnixSockets
	Count     int64
	Source    Source
}

// Source says how a denial became known.
type Source string

// The sources.
const (
	Seccomp Source = "seccomp" // the filter asked this process
	Egress  Source = "egress"  // the way out refused a connection or a look-up
	Audit   Source = "audit"   // the kernel's audit log
	Stderr  Source = "stderr"  // a hint: the error that Node printed last
)

const (
	maxDenials = 64
	maxTarget  = 256
)

// Denials collects the denials of one run. Its methods may be called from several goroutines at
// once.
type Denials struct {
	permissions policy.Permissions
	dir         string // where the run started

	mu      sync.Mutex
	list    []Denial
	more    bool
	observe func(Denial) // may be nil
}

// NewDenials returns an empty list for a run that starts in dir under complete permissions.
func NewDenials(p policy.Permissions, dir string) *Denials {
	return &Denials{permissions: p, dir: dir}
}

// Observe calls f with each denial that differs from the earlier ones, beginning with those
// so far. Every Count that f sees is 1. f must not block.
func (d *Denials) Observe(f func(Denial)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.list {
		n.Count = 1
		f(n)
	}
	d.observe = f
}

// AddEgress adds something that the way out refused, by a rule of the network scope, or by
// a limit if its name is not empty.
func (d *Denials) AddEgress(op policy.Operation, target string, rule int, limit string) {
	n := Denial{Scope: policy.Network, Operation: op, Target: target, Rule: RuleName(policy.Network, rule), Source: Egress}
	if limit != "" {
		n.Rule = "limits." + limit
	}
	d.add(n)
}

// add counts a denial and fills in its rule. A guest can cause any number of them, so that
// equal ones count as one, and the list is bounded.
func (d *Denials) add(n Denial) {
	n.Target = sanitize(n.Target)
	if n.Rule == "" {
		n.Rule = d.rule(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.list {
		old := &d.list[i]
		if old.Scope == n.Scope && old.Operation == n.Operation && old.Target == n.Target && old.Source == n.Source {
			old.Count++
			return
		}
	}
	if len(d.list) == maxDenials {
		d.more = true
		return
	}
	n.Count = 1
	d.list = append(d.list, n)
	if d.observe != nil {
		d.observe(n)
	}
}

// rule returns the name of the rule that denies n.
func (d *Denials) rule(n Denial) string {
	op, target := n.Operation, n.Target
	switch {
	case op == "socket" && strings.HasPrefix(target, unixFamily):
		return "mounts"
	case op == "socket": // any use of it is denied; the rule for localhost is the one that matters
		op, target = "connect", "tcp://localhost:1"
		if strings.HasSuffix(n.Target, "SOCK_DGRAM") {
			target = "udp://localhost:1"
		}
	case n.Scope == policy.FS || n.Scope == policy.ChildProcess:
		target = absolute(target)
	}
	return RuleName(n.Scope, d.permissions.Decide(n.Scope, op, target).Rule)
}

// RuleName returns the name of a scope's rule, or of its default if rule is -1.
func RuleName(scope string, rule int) string {
	if rule >= 0 {
		return scope + ".rules[" + strconv.Itoa(rule) + "]"
	}
	return scope + ".default"
}

// absolute returns a path that permissions can decide on for one that a guest named.
func absolute(target string) string {
	if !path.IsAbs(target) {
		return "/"
	}
	return path.Clean(target)
}

func sanitize(target string) string {
	target = strings.ToValidUTF8(target, "\uFFFD")
	for len(target) > maxTarget {
		_, size := utf8.DecodeLastRuneInString(target)
		target = target[:len(target)-size]
	}
	return target
}

// AddHint adds the denial that the end of standard error hints at, for a run that has
// ended with an exit code.
func (d *Denials) AddHint(exitCode int, stderrTail []byte) {
	if n, ok := d.hint(exitCode, stderrTail); ok && !d.isKnown(n) {
		d.add(n)
	}
}

// AddCall adds a system call that the filter refused.
func (d *Denials) AddCall(c notify.Call) {
	n := Denial{Target: c.Path, Source: Seccomp}
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
		n.Scope, n.Operation, n.Target = policy.Network, "socket", socketName(c)
	}
	d.add(n)
}

// Since returns the denials that are not in before, an earlier result of Since(nil), in the
// order of their first occurrence. more reports whether some were left out.
func (d *Denials) Since(before []Denial) (list []Denial, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, n := range d.list {
		if i < len(before) {
			n.Count -= before[i].Count
		}
		if n.Count > 0 {
			list = append(list, n)
		}
	}
	return list, d.more
}

const unixFamily = "AF_UNIX"

// socketName returns the family and type that a guest passed to socket(2) or
// socketpair(2), as the manual pages write them, such as "AF_INET SOCK_STREAM".
func socketName(c notify.Call) string {
	const families = 0xffff_ffff // of an int
	family, ok := map[uint64]string{
		unix.AF_INET: "AF_INET", unix.AF_INET6: "AF_INET6", unix.AF_UNIX: unixFamily,
	}[c.Args[0]&families]
	if c.Nr != unix.SYS_SOCKET && c.Nr != unix.SYS_SOCKETPAIR || !ok {
		return ""
	}
	const types = 0xf // the rest are flags
	kind, ok := map[uint64]string{unix.SOCK_STREAM: "SOCK_STREAM", unix.SOCK_DGRAM: "SOCK_DGRAM", unix.SOCK_RAW: "SOCK_RAW"}[c.Args[1]&types]
	if !ok {
		kind = fmt.Sprint(c.Args[1] & types)
	}
	return family + " " + kind
}
