package enforce

import (
	"cmp"
	"net"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"gaol/internal/lazyregexp"
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
	n.Scope, n.Rule, n.Source = policy.Network, policy.RuleName(policy.Network, rule), policy.SourceEgress
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
	n.Target = strings.ToValidUTF8(n.Target, "\uFFFD")
	for len(n.Target) > maxTarget {
		_, size := utf8.DecodeLastRuneInString(n.Target)
		n.Target = n.Target[:len(n.Target)-size]
	}
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
	return policy.RuleName(n.Scope, decided.Rule)
}

// absolute makes a guest's path absolute, so that permissions can decide on it.
func absolute(target string) string {
	if !path.IsAbs(target) {
		return "/"
	}
	return path.Clean(target)
}

// AddHint adds the denial that the end of standard error hints at, for a run that has
// ended with an exit code.
func (d *Denials) AddHint(exitCode int, stderrTail []byte) {
	if exitCode != 0 {
		d.addUnknown(d.hint(string(stderrTail)))
	}
}

// AddError adds the denial that an error of a snippet and its causes hint at.
func (d *Denials) AddError(text string) { d.addUnknown(d.nodeHint(text)) }

// addUnknown adds the denial that a text hints at, if it does.
func (d *Denials) addUnknown(n policy.Denial, ok bool) {
	if ok && !d.isKnown(n) {
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

// The beginnings of Node's error messages, which name the call and its target.
var (
	pathError = lazyregexp.New(`(?m)^(?:\w*Error: )?(?:EACCES|EPERM|EROFS): [a-z -]+, (\w+) '([^'\n]+)'(?: -> '([^'\n]+)')?`)
	nameError = lazyregexp.New(`\bgetaddrinfo (?:EAI_AGAIN|ENOTFOUND) ([A-Za-z0-9._-]{1,253})`)
	callError = lazyregexp.New(`\bError: (connect|listen|bind|kill|spawn|spawnSync) (?:(\S+) )?(EACCES|EPERM|ENETUNREACH|ECONNREFUSED)\b(?:: permission denied)?(?: (\S+:\d+))?`)
)

// Messages of curl, git, ssh and wget about unknown hosts, and of curl and git about unreachable hosts.
var (
	unknownHost     = lazyregexp.New(`(?:[Cc]ould not resolve host(?:name)?|bad address|unable to resolve host address):? ['‘"]?([A-Za-z0-9._-]{1,253})`)
	unreachableHost = lazyregexp.New(`Failed to connect to (\S+) port (\d+)`)
)

// HostPorts is the rule of a connect to a port of localhost on which nothing in the sandbox listens, if
// the host may have the server. The permissions allow it; an option leads the port there.
const HostPorts = "hostPorts"

// operationsOf maps a call of Node's to the operations that it needs on its path, or on
// the first of two paths.
var operationsOf = map[string][]policy.Operation{
	"open": {"read", "write", "truncate"}, "scandir": {"readdir"}, "opendir": {"readdir"}, "mkdir": {"create_dir"},
	"unlink": {"rm"}, "rmdir": {"rm"}, "rm": {"rm"}, "rename": {"rename", "rm"}, "link": {"rename"},
	"stat": {"stat"}, "lstat": {"stat"}, "access": {"stat"}, "readlink": {"readlink"},
	"chmod": {"chmod"}, "utime": {"chmod"}, "chown": {"chmod"}, "copyfile": {"read"}, "ftruncate": {"truncate"},
}

// operationsTo has those on the second path.
var operationsTo = map[string][]policy.Operation{
	"rename": {"rename", "write"}, "link": {"rename", "write"}, "symlink": {"symlink"}, "copyfile": {"write"},
}

// hint returns the denial that the last lines of standard error indicate, if the permissions deny it.
func (d *Denials) hint(tail string) (policy.Denial, bool) {
	// Node prints its version after an error, and npm begins its lines with "npm error".
	if strings.Contains(tail, "Node.js v") || strings.Contains(tail, "npm error ") {
		return d.nodeHint(tail)
	}
	if m := last(unknownHost(), tail); m != nil {
		return d.nameHint(m[1])
	}
	if m := last(unreachableHost(), tail); m != nil {
		return d.connectHint(m[1]+":"+m[2], net.ParseIP(m[1]) == nil || isLoopback(m[1]))
	}
	return policy.Denial{}, false
}

// nodeHint is hint for text with errors of Node.
func (d *Denials) nodeHint(text string) (policy.Denial, bool) {
	if m := last(pathError(), text); m != nil {
		return d.pathHint(m)
	}
	if m := last(callError(), text); m != nil {
		return d.callHint(m)
	}
	if m := last(nameError(), text); m != nil {
		return d.nameHint(m[1])
	}
	return policy.Denial{}, false
}

func (d *Denials) nameHint(name string) (policy.Denial, bool) {
	n := policy.Denial{Scope: policy.Network, Operation: "dns", Target: "dns://" + strings.ToLower(name), Source: policy.SourceStderr}
	return n, !d.permissions.Decide(n.Scope, n.Operation, n.Target).Allowed
}

// connectHint is about a connect to an address and port. If it was refused by the other side, it was
// denied only if that is the host.
func (d *Denials) connectHint(address string, refused bool) (policy.Denial, bool) {
	n := policy.Denial{Scope: policy.Network, Operation: "connect", Target: "tcp://" + bracketed(address), Source: policy.SourceStderr}
	allowed := d.permissions.Decide(n.Scope, n.Operation, n.Target).Allowed
	if allowed && refused {
		n.Rule = HostPorts
		host, _, _ := net.SplitHostPort(bracketed(address))
		return n, isLoopback(host)
	}
	return n, !allowed
}

// isLoopback reports whether a host is the addresses of localhost to which ports of the host lead.
func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// last returns the last match and its groups, or nil. Earlier errors may have been handled; the
// last one is what ended the program.
func last(re *regexp.Regexp, text string) []string {
	all := re.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

func (d *Denials) pathHint(m []string) (policy.Denial, bool) {
	call := m[1]
	for _, at := range []struct {
		path string
		ops  []policy.Operation
	}{{m[2], operationsOf[call]}, {m[3], operationsTo[call]}} {
		target := at.path
		if !path.IsAbs(target) { // a guess: the program may have changed its directory
			target = path.Join(d.dir, target)
		}
		for _, op := range at.ops {
			if !d.permissions.Decide(policy.FS, op, path.Clean(target)).Allowed {
				return policy.Denial{Scope: policy.FS, Operation: op, Target: target, Source: policy.SourceStderr}, true
			}
		}
	}
	return policy.Denial{}, false
}

func (d *Denials) callHint(m []string) (policy.Denial, bool) {
	n := policy.Denial{Source: policy.SourceStderr}
	resource := ""
	switch m[1] {
	case "connect":
		return d.connectHint(m[4], m[3] == "ECONNREFUSED")
	case "listen", "bind":
		port := cmp.Or(m[4][strings.LastIndexByte(m[4], ':')+1:], "*") // Node does not print port 0
		resource = map[string]string{"listen": "tcp", "bind": "udp"}[m[1]] + "://localhost:" + port
		n.Scope, n.Operation, n.Target = policy.Network, "listen", resource
	case "kill":
		n.Scope, n.Operation = policy.Process, "signal"
	default:
		n.Scope, n.Operation, n.Target = policy.ChildProcess, "spawn", m[2]
		resource = absolute(m[2])
	}
	return n, !d.permissions.Decide(n.Scope, n.Operation, resource).Allowed
}

// bracketed writes an address and port as in a URL. Node prints ::1:80.
func bracketed(s string) string {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || !strings.Contains(s[:i], ":") {
		return s
	}
	return "[" + s[:i] + "]" + s[i:]
}

// isKnown reports whether the cause of a hint has already been reported by the kernel, or by the proxy for
// egress, which reports all connects and look-ups. A socket that the kernel denied does not count, because its
// purpose is unknown.
func (d *Denials) isKnown(n policy.Denial) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.list, func(old policy.Denial) bool {
		return old.Source != policy.SourceStderr && old.Scope == n.Scope && (old.Operation == n.Operation || old.Source == policy.SourceEgress)
	})
}
