package policy

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the scopes.
const (
	FS           = "fs"
	Network      = "network"
	ChildProcess = "childProcess"
	Process      = "process"
	Env          = "env"
)

// scopeInfo describes one scope of the language. The parser, the checks and the schema use
// this table.
type scopeInfo struct {
	name    string
	about   string
	of      func(*Permissions) *Scope
	key     string // JSON key of a rule's patterns; "" for a scope without patterns
	entries string // describes a pattern
	ops     []opInfo
	pattern func(string) error // validates a pattern
	match   func(pattern string, op Operation, resource string) bool
}

type opInfo struct {
	name  Operation
	about string
}

var scopes = []scopeInfo{
	{
		name: FS, about: "files and folders of the guest's own tree",
		of:  func(p *Permissions) *Scope { return &p.FS },
		key: "paths", entries: "an absolute path; * and ? match within one element, ** matches any elements, P/** is P and all below it",
		pattern: checkPath, match: matchPathOp,
		ops: []opInfo{
			{"read", "read the content of a file"},
			{"write", "write to a file, or create one"},
			{"stat", "see that a file exists, its size, times and owner; allowed with any other operation"},
			{"readdir", "list a folder"},
			{"create_dir", "create a folder"},
			{"rm", "remove a file or folder"},
			{"rename", "rename, and link from one folder to another; also takes rm and write"},
			{"symlink", "create a symbolic link"},
			{"readlink", "read a symbolic link; allowed with any other operation"},
			{"chmod", "change mode, owner, times and extended attributes"},
			{"truncate", "cut a file short"},
			{"execute", "start a file as a program"},
		},
	},
	{
		name: Network, about: "sockets, except those between the guest's own processes",
		of:  func(p *Permissions) *Scope { return &p.Network },
		key: "patterns", entries: "tcp://HOST:PORT, udp://HOST:PORT or dns://NAME; PORT may be *, HOST and NAME may be * or *.NAME",
		pattern: checkNet, match: matchNet,
		ops: []opInfo{
			{"fetch", "make a request; the kernel cannot distinguish it from connect"},
			{"connect", "connect to a port, or send to it"},
			{"listen", "accept connections"},
			{"dns", "look up a name"},
		},
	},
	{
		name: ChildProcess, about: "programs the guest starts",
		of:  func(p *Permissions) *Scope { return &p.ChildProcess },
		key: "patterns", entries: "the absolute path of a program; P/** is all programs below P",
		pattern: checkPath, match: matchPathOp,
		ops: []opInfo{{"spawn", "start a program"}},
	},
	{
		name: Process, about: "other processes of the guest",
		of: func(p *Permissions) *Scope { return &p.Process },
		ops: []opInfo{
			{"signal", "send a signal"},
			{"inspect", "see other processes in /proc, and trace them"},
		},
	},
	{
		name: Env, about: "variables of the environment",
		of:  func(p *Permissions) *Scope { return &p.Env },
		key: "patterns", entries: "a variable's name; * matches any characters and ? one",
		pattern: checkEnv, match: func(pattern string, _ Operation, name string) bool { return matchWildcard(pattern, name) },
		ops: []opInfo{{"read", "get the variable"}},
	},
}

func scopeNamed(name string) *scopeInfo {
	for i := range scopes {
		if scopes[i].name == name {
			return &scopes[i]
		}
	}
	return nil
}

func (s *scopeInfo) has(op Operation) bool {
	return slices.ContainsFunc(s.ops, func(o opInfo) bool { return o.name == op })
}

// decidesAll reports whether a rule decides all operations of its scope.
func (r Rule) decidesAll() bool {
	return r.Operations == nil || slices.Equal(r.Operations, []Operation{everyOperation})
}

// decides reports whether a rule decides op.
func (r Rule) decides(op Operation) bool {
	return r.decidesAll() || slices.ContainsFunc(r.Operations, func(o Operation) bool { return o.name() == op })
}

// operations returns the operations that a rule decides.
func (s *scopeInfo) operations(r Rule) []Operation {
	var list []Operation
	for _, o := range s.ops {
		if r.decides(o.name) {
			list = append(list, o.name)
		}
	}
	return list
}

// everyOperation is the operation of a rule that decides all of its scope.
const everyOperation Operation = "*"

// name returns the name in the scope's table, for an operation that has two.
func (op Operation) name() Operation {
	if op == "http" {
		return "fetch"
	}
	return op
}

// opSet is a set of fs operations: one bit for each row of the table.
type opSet uint16

var (
	statSet        = setOf(statOps...)
	writingSet     = setOf(writing...)
	executeSet     = setOf("execute")
	chmodSet       = setOf("chmod")
	renameSet      = setOf("rename")
	listSet        = setOf("readdir")
	removeWriteSet = setOf("rm", "write")
	createSet      = setOf("write", "create_dir", "symlink")
	landlockSet    = setOf(scopeNamed(FS).operations(Rule{})...) &^ statSet &^ chmodSet

	// folderSet are the operations whose right Landlock checks on the folder.
	folderSet = setOf("readdir", "create_dir", "rm", "rename", "symlink")
)

func setOf(ops ...Operation) opSet {
	var set opSet
	for i, o := range scopeNamed(FS).ops {
		if slices.Contains(ops, o.name) {
			set |= 1 << i
		}
	}
	return set
}

func (s opSet) list() []Operation {
	var ops []Operation
	for i, o := range scopeNamed(FS).ops {
		if s&(1<<i) != 0 {
			ops = append(ops, o.name)
		}
	}
	return ops
}

// when returns the set if a condition holds, and no operation otherwise.
func (s opSet) when(holds bool) opSet {
	if holds {
		return s
	}
	return 0
}

// String lists the operations for people.
func (s opSet) String() string { return join(s.list()) }

func join[T Operation | Place | PortRange | string](list []T) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, ", ")
}
