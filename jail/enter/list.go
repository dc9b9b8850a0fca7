package enter

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// List is what the program is told.
type List struct {
	Steps []Step

	// Filter is a classic BPF program: an array of struct sock_filter. The step of
	// the same name puts it on.
	Filter []byte

	// Listening gets the listener that FilterListened makes, and owns it. The other end
	// of conn, which stays Hand's, is closed once the program has executed another, or
	// has ended: until then, the calls that the filter refers to the listener are its own.
	Listening func(listener *os.File, conn syscall.Conn)
}

const (
	instructionLen = 8 // sizeof(struct sock_filter)
	maxSteps       = 256
	maxText        = 8 << 20
	maxStrings     = 4 // of a step
)

// encode writes what src/wire.c draws, and refuses what the program would refuse
// with less to say.
func (l *List) encode() ([]byte, error) {
	if len(l.Steps) > maxSteps {
		return nil, fmt.Errorf("%d steps, the limit is %d", len(l.Steps), maxSteps)
	}
	order := binary.NativeEndian
	var text, steps []byte
	for _, s := range l.Steps {
		steps = order.AppendUint32(steps, s.op)
		steps = order.AppendUint32(steps, s.number)
		steps = order.AppendUint64(steps, s.value)
		var begins [maxStrings]uint32
		for i, t := range s.text {
			if strings.ContainsRune(t, 0) {
				return nil, fmt.Errorf("%s: %q has a NUL", s.Name, t)
			}
			if i < maxStrings {
				begins[i] = uint32(len(text))
			}
			text = append(append(text, t...), 0)
			if len(text) > maxText {
				return nil, &StepError{s.Name, s.Target, syscall.E2BIG}
			}
		}
		for _, b := range begins {
			steps = order.AppendUint32(steps, b)
		}
	}
	head := order.AppendUint32(nil, uint32(len(l.Steps)))
	head = order.AppendUint32(head, uint32(len(l.Filter)/instructionLen))
	head = order.AppendUint32(head, uint32(len(text)))
	return append(append(append(head, steps...), l.Filter...), text...), nil
}

// StepError says which step failed, and why.
type StepError struct {
	Step, Target string
	Err          syscall.Errno
}

// Error names the step and the cause.
func (e *StepError) Error() string { return e.Step + " " + e.Target + ": " + e.Err.Error() }

// Unwrap returns the errno.
func (e *StepError) Unwrap() error { return e.Err }

// stepError turns a report's numbers into words.
func (l *List) stepError(number uint32, errno syscall.Errno) error {
	switch {
	case number == maxSteps+1:
		return &StepError{"list", "", errno}
	case int(number) > len(l.Steps):
		return ErrUnexpected
	}
	s := l.Steps[number-1]
	return &StepError{s.Name, s.Target, errno}
}
