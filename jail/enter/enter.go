package enter

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Source is the C source of the program. It needs nothing but a C library and
// is meant to be linked statically.
//
//go:embed src/enter.c
var Source string

// Where an image holds what starts a jail.
const (
	Path   = "/usr/libexec/gaol/enter"     // the compiled program, mode 0711, owned by root
	Reaper = "/usr/libexec/gaol/catatonit" // the static pid 1
)

// Setup is what the program is told before it enters.
type Setup struct {
	// DieWithHost has the kernel kill the process when the host thread that
	// started it ends. It is for pid 1: the rest of the jail dies with it.
	DieWithHost bool

	// Limits are the process's resource limits, soft and hard. They only fall:
	// where the host's own hard limit is lower, that stays.
	Limits []Limit

	// Filter is a classic BPF program: an array of struct sock_filter.
	Filter []byte
}

// Limit is a resource limit, see setrlimit(2).
type Limit struct {
	Resource uint32 // RLIMIT_…
	Most     uint64
}

const (
	dieWithHost    = 1
	instructionLen = 8 // sizeof(struct sock_filter)
)

// StepError says which step of the program failed, and why.
type StepError struct {
	Step string // "setup", "death signal", "limit", "seccomp", "exec" or StepChdir
	Err  syscall.Errno
}

// Error names the step and the cause.
func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

// Unwrap returns the errno.
func (e *StepError) Unwrap() error { return e.Err }

// StepChdir is the step that has the process's working directory as its object; the
// others have the program.
const StepChdir = "chdir"

var steps = map[uint32]string{1: "setup", 2: "death signal", 3: "seccomp", 4: "exec", 5: "limit", 6: StepChdir}

// What Hand gives where the program does not speak as it should.
var (
	ErrUnexpected = errors.New("unexpected report of the entry program")
	ErrEnded      = errors.New("the entry program ended")
)

// Hand tells the program behind conn what to do and waits until its own
// program runs. A failed step is a [*StepError].
func Hand(conn io.ReadWriter, s Setup) error {
	if _, err := conn.Write(s.encode()); err != nil {
		return fmt.Errorf("hand over the filter: %w", err)
	}
	if err := readReport(conn); err != nil {
		return err
	}
	// All is set; an end without a further report is that of a program that was
	// started, for the socket is closed by that.
	if err := readReport(conn); !errors.Is(err, ErrEnded) {
		return err
	}
	return nil
}

// readReport returns nil for the report that all is set.
func readReport(r io.Reader) error {
	var report [8]byte
	if _, err := io.ReadFull(r, report[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	number := binary.NativeEndian.Uint32(report[:])
	if number == 0 {
		return nil
	}
	step, known := steps[number]
	if !known {
		return ErrUnexpected
	}
	return &StepError{step, syscall.Errno(binary.NativeEndian.Uint32(report[4:]))}
}

// encode writes what src/enter.c draws.
func (s *Setup) encode() []byte {
	order := binary.NativeEndian
	var flags uint32
	if s.DieWithHost {
		flags = dieWithHost
	}
	text := order.AppendUint32(nil, flags)
	text = order.AppendUint32(text, uint32(len(s.Limits)))
	for _, l := range s.Limits {
		text = order.AppendUint32(text, l.Resource)
		text = order.AppendUint64(order.AppendUint32(text, 0), l.Most)
	}
	text = order.AppendUint32(text, uint32(len(s.Filter)/instructionLen))
	return append(text, s.Filter...)
}
