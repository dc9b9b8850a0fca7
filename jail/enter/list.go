package enter

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// List is the program's input.
type List struct {
	Steps []Step

	// Filter is a classic BPF program, an array of struct sock_filter. The step of the
	// same name loads it.
	Filter []byte

	// OnListener is called with the listener that FilterWithListener creates, and owns
	// it. Launch keeps conn. Its other end is closed when the entry program has executed
	// the guest's program or has ended: until then, the calls that the filter sends to
	// the listener are the entry program's.
	OnListener func(listener *os.File, conn syscall.Conn)
}

const (
	instructionLen = 8 // sizeof(struct sock_filter)
	maxSteps       = 256
	maxText        = 8 << 20
	maxStrings     = 4 // of a step
)

// encode returns the message that src/protocol.c describes. It rejects lists that the
// program would reject with a less specific error.
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
		var offsets [maxStrings]uint32
		for i, t := range s.text {
			if strings.ContainsRune(t, 0) {
				return nil, fmt.Errorf("%s: %q contains a NUL byte", s.Name, t)
			}
			if i < maxStrings {
				offsets[i] = uint32(len(text))
			}
			text = append(append(text, t...), 0)
			if len(text) > maxText {
				return nil, &StepError{s.Name, s.Target, syscall.E2BIG}
			}
		}
		for _, o := range offsets {
			steps = order.AppendUint32(steps, o)
		}
	}
	head := order.AppendUint32(nil, uint32(len(l.Steps)))
	head = order.AppendUint32(head, uint32(len(l.Filter)/instructionLen))
	head = order.AppendUint32(head, uint32(len(text)))
	return append(append(append(head, steps...), l.Filter...), text...), nil
}

// StepError is the error of a failed step.
type StepError struct {
	Step, Target string
	Err          syscall.Errno
}

// Error returns the step, its target and the cause.
func (e *StepError) Error() string { return e.Step + " " + e.Target + ": " + e.Err.Error() }

// Unwrap returns the errno.
func (e *StepError) Unwrap() error { return e.Err }

// stepError returns the error for the numbers of a report.
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
