package zygote

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"gaol/jail/enter"
	"gaol/jail/mounts"
	"gaol/jail/step"
)

// Entry describes how a child enters a jail, as the guest's user.
type Entry struct {
	// JoinFiles are written to first, to join cgroups.
	JoinFiles []*os.File

	// Cgroup is the directory of the cgroup in which the child is created; may be nil.
	Cgroup *os.File

	// Jail is a pidfd of the jail's pid 1.
	Jail *os.File

	Limits []enter.Limit
	Filter []byte // see enter.List

	// Ruleset, if not nil, is a Landlock ruleset to enforce before the filter is loaded,
	// with RulesetFlags of landlock_restrict_self(2).
	Ruleset      *os.File
	RulesetFlags uint32

	// OnListener, if not nil, is called with the filter's listener when the filter is
	// loaded, and owns it. The child's refused calls block until then. The child closes
	// its end of conn when its own program runs; Fork or Run closes conn.
	OnListener func(listener *os.File, conn syscall.Conn)
}

// Program is the program that a process runs.
type Program struct {
	// Args are the program and its arguments, as in /proc. The program is a guest path,
	// or a name to look up in PATH of Env.
	Args []string

	// Script, if not 0, is the index in Args of a script's path, which its arguments follow. A child
	// of a zygote then continues as the Node that it already is, and Args, which should be Node's
	// command line, are only shown. Zero: the process executes Args[0].
	Script int

	Env []string // K=V
	Dir string   // guest path of the working directory

	// Terminal makes the first of Files, a terminal without a session, the controlling
	// terminal of the process's session.
	Terminal bool

	// Files become the descriptors from 0 on: at least three, at most six.
	Files []*os.File
}

// steps are the names of enum step in src/protocol.c.
var steps = []string{
	1: "request", "pid namespace", "clone", "cgroup", "arguments", "namespaces", "descriptors", "session", "terminal",
	"limit", "user", "capabilities", "chdir", "no_new_privs", "landlock", "seccomp", "event loop", "exec",
}

// errUnexpected is the error of a malformed reply.
var errUnexpected = errors.New("unexpected reply of the zygote")

func stepError(number, errno uint32) error {
	if number == 0 || int(number) >= len(steps) {
		return errUnexpected
	}
	return &step.Error{Step: steps[number], Err: syscall.Errno(errno)}
}

const minFiles, maxFiles = 3, 6

// Bits of request.flags.
const (
	hasRuleset = 1 << iota
	hasListener
)

// files returns the descriptors of the request.
func (e *Entry) files() []*os.File {
	if e.Ruleset == nil {
		return e.JoinFiles
	}
	return append(slices.Clip(e.JoinFiles), e.Ruleset)
}

// encode returns struct request and the data that follows it.
func (e *Entry) encode(parked bool) []byte {
	flags := toInt(e.Ruleset != nil)*hasRuleset + toInt(e.OnListener != nil)*hasListener
	b := words(toInt(parked), len(e.JoinFiles), len(e.Limits), len(e.Filter)/enter.InstructionLen, mounts.GuestUID, mounts.GuestGID, flags, int(e.RulesetFlags))
	for _, l := range e.Limits {
		b = append(b, words(int(l.Resource), 0)...)
		b = binary.NativeEndian.AppendUint64(b, l.Most)
	}
	return append(b, e.Filter...)
}

// encode returns struct program and the data that follows it. It rejects programs that the
// child would reject with a less specific error.
func (p *Program) encode() ([]byte, error) {
	switch {
	case len(p.Files) < minFiles || len(p.Files) > maxFiles:
		return nil, fmt.Errorf("%d files for a process, want %d to %d", len(p.Files), minFiles, maxFiles)
	case len(p.Args) == 0 || p.Script < 0 || p.Script >= len(p.Args):
		return nil, fmt.Errorf("script %d of %d arguments", p.Script, len(p.Args))
	}
	text, err := enter.AppendText(nil, slices.Concat(p.Args, p.Env, []string{p.Dir})...)
	if err != nil {
		return nil, fmt.Errorf("arguments and environment: %w", err)
	}
	return append(words(p.Script, toInt(p.Terminal), len(p.Files), len(p.Args), len(p.Env), len(text)), text...), nil
}

func toInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func words(list ...int) []byte {
	var b []byte
	for _, n := range list {
		b = binary.NativeEndian.AppendUint32(b, uint32(n))
	}
	return b
}

//go:embed src/protocol.c
var protocolSource string

//go:embed src/threads.c
var threadsSource string

//go:embed src/zygote.c
var zygoteSource string

//go:embed src/request.c
var requestSource string

//go:embed src/random.c
var randomSource string

//go:embed src/child.c
var childSource string

//go:embed src/addon.c
var addonSource string

// Source is the C source of the object that makes Node forkable, as one translation unit:
// src/protocol.c describes the protocol; src/threads.c records Node's helper threads and
// revives them in a child; src/zygote.c is preloaded into Node and forks; src/request.c
// reads a child's requests; src/random.c renews V8's random generator; src/child.c enters the jail, with enter.ConfineSource; and src/addon.c
// is the interface to JavaScript. It needs only a C library and should be linked as a shared
// object.
var Source = protocolSource + enter.ConfineSource + threadsSource + zygoteSource + requestSource + randomSource + childSource + addonSource

// Path is the path of the compiled object in an image.
const Path = "/usr/libexec/gaol/zygote.so"
