package zygote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"gaol/jail/enter"
)

// Entry is how a child goes into a jail.
type Entry struct {
	// JoinFiles are written to before anything else, to join cgroups.
	JoinFiles []*os.File

	// Cgroup is the directory of the cgroup that the child is born in; may be nil.
	Cgroup *os.File

	// Jail is a pidfd of the jail's pid 1.
	Jail *os.File

	OOMScore int // oom_score_adj, see proc_pid_oom_score_adj(5)
	UID, GID int // as the guest sees them
	Limits   []enter.Limit
	Filter   []byte // see enter.List

	// Ruleset, if not nil, is the Landlock ruleset that is put on before the filter,
	// with RulesetFlags of landlock_restrict_self(2).
	Ruleset      *os.File
	RulesetFlags uint32

	// Listening, if not nil, gets the filter's listener once the filter is on, and
	// owns it. Nobody answers the child's calls before. The child closes its end of
	// conn when its own program runs; conn stays Fork's, or Run's.
	Listening func(listener *os.File, conn syscall.Conn)
}

// Program is what a child becomes there.
type Program struct {
	// Args are the program and its arguments, which /proc shows. The program is a
	// guest path, or a name looked up in PATH of Env.
	Args []string

	// Script is the place in Args of the script's path, which is followed by its
	// arguments. The child then goes on as the zygote's Node, which Args should be
	// the command line of. Zero: it executes Args[0].
	Script int

	Env []string // K=V
	Dir string   // guest path of the working directory

	// Terminal has the first of Files, a terminal that no session has, become the
	// controlling one of the child's session.
	Terminal bool

	// Files become the descriptors from 0 on: at least three, at most five.
	Files []*os.File
}

// StepError says which step on the way into the jail failed, and why.
type StepError struct {
	Step string
	Err  syscall.Errno
}

// Error names the step and the cause.
func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

// Unwrap returns the errno.
func (e *StepError) Unwrap() error { return e.Err }

// steps are enum step of src/wire.c.
var steps = []string{
	1: "request", "pid namespace", "clone", "cgroup", "arguments", "namespaces", "descriptors", "session", "terminal",
	"limit", "user", "capabilities", "chdir", "no_new_privs", "landlock", "seccomp", "event loop", "exec",
}

// errUnexpected is what an answer that makes no sense gives.
var errUnexpected = errors.New("unexpected answer of the zygote")

func stepError(step, errno uint32) error {
	if step == 0 || int(step) >= len(steps) {
		return errUnexpected
	}
	return &StepError{steps[step], syscall.Errno(errno)}
}

const (
	minFiles, maxFiles = 3, 6
	instructionLen     = 8 // sizeof(struct sock_filter)
	maxText            = 8 << 20
)

// check refuses what the child would refuse with less to say.
func (p *Program) check() error {
	switch {
	case len(p.Files) < minFiles || len(p.Files) > maxFiles:
		return fmt.Errorf("%d files for a process, want %d to %d", len(p.Files), minFiles, maxFiles)
	case len(p.Args) == 0 || p.Script < 0 || p.Script >= len(p.Args):
		return fmt.Errorf("script %d of %d arguments", p.Script, len(p.Args))
	}
	for _, list := range [][]string{p.Args, p.Env, {p.Dir}} {
		for _, s := range list {
			if strings.ContainsRune(s, 0) {
				return fmt.Errorf("%q has a NUL", s)
			}
		}
	}
	return nil
}

// Of request.flags.
const (
	hasRuleset = 1 << iota
	hasListener
)

// files are the descriptors of the request.
func (e *Entry) files() []*os.File {
	if e.Ruleset == nil {
		return e.JoinFiles
	}
	return append(e.JoinFiles[:len(e.JoinFiles):len(e.JoinFiles)], e.Ruleset)
}

// encode writes struct request and what follows it.
func (e *Entry) encode(parked bool) []byte {
	isParked, flags := 0, 0
	if parked {
		isParked = 1
	}
	if e.Ruleset != nil {
		flags |= hasRuleset
	}
	if e.Listening != nil {
		flags |= hasListener
	}
	b := words(isParked, len(e.JoinFiles), len(e.Limits), len(e.Filter)/instructionLen, e.UID, e.GID, flags, int(e.RulesetFlags))
	for _, l := range e.Limits {
		b = append(b, words(int(l.Resource), 0)...)
		b = binary.NativeEndian.AppendUint64(b, l.Most)
	}
	return append(b, e.Filter...)
}

// encode checks the program and writes struct program and what follows it.
func (p *Program) encode() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var text []byte
	for _, list := range [][]string{p.Args, p.Env, {p.Dir}} {
		for _, s := range list {
			text = append(append(text, s...), 0)
		}
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("arguments and environment have %d bytes: %w", len(text), syscall.E2BIG)
	}
	terminal := 0
	if p.Terminal {
		terminal = 1
	}
	return append(words(p.Script, terminal, len(p.Files), len(p.Args), len(p.Env), len(text)), text...), nil
}

func words(list ...int) []byte {
	var b []byte
	for _, n := range list {
		b = binary.NativeEndian.AppendUint32(b, uint32(n))
	}
	return b
}
