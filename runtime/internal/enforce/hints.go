package enforce

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"gaol/policy"
)

// The beginnings of Node's error messages, which name the call and its target.
var (
	pathError = regexp.MustCompile(`(?m)^(?:\w*Error: )?(?:EACCES|EPERM|EROFS): [a-z -]+, (\w+) '([^'\n]+)'(?: -> '([^'\n]+)')?`)
	nameError = regexp.MustCompile(`\bgetaddrinfo (?:EAI_AGAIN|ENOTFOUND) ([A-Za-z0-9._-]{1,253})`)
	callError = regexp.MustCompile(`\bError: (connect|kill|spawn|spawnSync) (?:(\S+) )?(?:EACCES|EPERM|ENETUNREACH)\b(?: (\S+:\d+))?`)
)

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

// hint returns what the end of standard error says was denied, if the permissions deny it.
func (d *Denials) hint(exitCode int, tail []byte) (Denial, bool) {
	if exitCode == 0 {
		return Denial{}, false
	}
	// Node prints its version after an error, and npm begins its lines with "npm error".
	if !bytes.Contains(tail, []byte("Node.js v")) && !bytes.Contains(tail, []byte("npm error ")) {
		return Denial{}, false
	}
	if m := last(pathError, tail); m != nil {
		return d.pathHint(m)
	}
	if m := last(callError, tail); m != nil {
		return d.callHint(m)
	}
	if m := last(nameError, tail); m != nil {
		n := Denial{Scope: policy.Network, Operation: "dns", Target: "dns://" + m[1], Source: Stderr}
		return n, !d.permissions.Decide(n.Scope, n.Operation, n.Target).Allowed
	}
	return Denial{}, false
}

// last returns the last match and its groups, or nil. Earlier errors may have been handled; the
// last one is what ended the program.
func last(re *regexp.Regexp, text []byte) []string {
	all := re.FindAllSubmatch(text, -1)
	if len(all) == 0 {
		return nil
	}
	var groups []string
	for _, g := range all[len(all)-1] {
		groups = append(groups, string(g))
	}
	return groups
}

func (d *Denials) pathHint(m []string) (Denial, bool) {
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
				return Denial{Scope: policy.FS, Operation: op, Target: target, Source: Stderr}, true
			}
		}
	}
	return Denial{}, false
}

func (d *Denials) callHint(m []string) (Denial, bool) {
	n := Denial{Source: Stderr}
	resource := ""
	switch m[1] {
	case "connect":
		resource = "tcp://" + bracketed(m[3])
		n.Scope, n.Operation, n.Target = policy.Network, "connect", resource
	case "kill":
		n.Scope, n.Operation = policy.Process, "signal"
	default:
		n.Scope, n.Operation, n.Target = policy.ChildProcess, "spawn", m[2]
		if resource = "/"; path.IsAbs(m[2]) {
			resource = path.Clean(m[2])
		}
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

// isKnown reports whether the cause of a hint has already been reported: by the kernel, where
// a refused socket explains a missing connection, or by the way out, which alone reports hosts
// outside the sandbox.
func (d *Denials) isKnown(n Denial) bool {
	localhost := policy.Permissions{Network: policy.Loopback()}
	outside := n.Scope == policy.Network && !localhost.Decide(n.Scope, n.Operation, n.Target).Allowed
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.list, func(old Denial) bool {
		same := old.Scope == n.Scope && (old.Operation == n.Operation || n.Scope == policy.Network)
		return same && (!outside || old.Source == Egress)
	})
}
