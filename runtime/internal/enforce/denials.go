package enforce

import (
	"path"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"gaol/policy"
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
	list    []policy.Denial
	more    bool
	observe func(policy.Denial) // may be nil
}

// NewDenials returns an empty list for a run that starts in dir under complete permissions.
func NewDenials(p policy.Permissions, dir string) *Denials {
	return &Denials{permissions: p, dir: dir}
}

// Observe calls f with each denial that differs from the earlier ones, beginning with those
// so far. Every Count that f sees is 1. f must not block.
func (d *Denials) Observe(f func(policy.Denial)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.list {
		n.Count = 1
		f(n)
	}
	d.observe = f
}

// AddEgress adds a denied connection or look-up, refused by a rule of the network scope, or by
// a limit if its name is not empty. Of n it reads Operation, Target and Address.
func (d *Denials) AddEgress(n policy.Denial, rule int, limit string) {
	n.Scope, n.Rule, n.Source = policy.Network, RuleName(policy.Network, rule), policy.SourceEgress
	if strings.HasPrefix(limit, "quota.") {
		n.Rule = limit
	} else if limit != "" {
		n.Rule = "limits." + limit
	}
	d.add(n)
}

// add counts a denial and fills in its rule. A guest can cause any number of them, so the list is bounded, and denials with the
// same scope, operation, target, address and source count as one. Of their rules, which differ if a limit refused one of
// them, the first stays.
func (d *Denials) add(n policy.Denial) {
	n.Target = sanitize(n.Target)
	if n.Rule == "" {
		n.Rule = d.rule(n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.list {
		old := &d.list[i]
		if old.Scope == n.Scope && old.Operation == n.Operation && old.Target == n.Target && old.Address == n.Address && old.Source == n.Source {
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
func (d *Denials) rule(n policy.Denial) string {
	op, target := n.Operation, n.Target
	switch {
	case op == "socket" && strings.HasPrefix(target, "AF_UNIX"):
		return "mounts"
	case op == "socket": // any use of it is denied, so the rule for localhost is the relevant one
		op, target = "connect", "tcp://localhost:1"
		if strings.HasSuffix(n.Target, "SOCK_DGRAM") {
			target = "udp://localhost:1"
		}
	case n.Scope == policy.FS || n.Scope == policy.ChildProcess:
		target = absolute(target)
	}
	decided := d.permissions.Decide(n.Scope, op, target)
	if decided.Allowed { // the kernel refuses other protocols than TCP and UDP, whatever the rules
		decided.Rule = -1
	}
	return RuleName(n.Scope, decided.Rule)
}

// RuleName returns the name of a scope's rule, or of its default if rule is -1.
func RuleName(scope string, rule int) string {
	if rule >= 0 {
		return scope + ".rules[" + strconv.Itoa(rule) + "]"
	}
	return scope + ".default"
}

// absolute makes a guest's path absolute, so that permissions can decide on it.
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
	if exitCode == 0 {
		return
	}
	if n, ok := d.hint(string(stderrTail)); ok && !d.isKnown(n) {
		d.add(n)
	}
}

// AddError adds the denial that an error of a snippet and its causes hint at.
func (d *Denials) AddError(text string) {
	if n, ok := d.nodeHint(text); ok && !d.isKnown(n) {
		d.add(n)
	}
}

// Add adds a denial that the sandbox reports.
func (d *Denials) Add(n policy.Denial) {
	// Both scopes deny it by the same right; the one whose rules allow it is not the cause.
	if n.Source == policy.SourceAudit && n.Operation == "execute" && d.permissions.Decide(policy.FS, n.Operation, absolute(n.Target)).Allowed {
		n.Scope, n.Operation = policy.ChildProcess, "spawn"
	}
	d.add(n)
}

// Since returns the denials that are not in before, an earlier result of Since(nil), in the
// order of their first occurrence. more reports whether some were left out.
func (d *Denials) Since(before []policy.Denial) (list []policy.Denial, more bool) {
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
