package enter

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"syscall"

	"gaol/jail/step"
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

// wireStep is struct step of src/protocol.c.
type wireStep struct {
	Op, Number uint32
	Value      uint64
	Text       [maxStrings]uint32
}

// encode returns the message that src/protocol.c describes. It rejects lists that the
// program would reject with a less specific error.
func (l *List) encode() ([]byte, error) {
	if len(l.Steps) > maxSteps {
		return nil, fmt.Errorf("%d steps, the limit is %d", len(l.Steps), maxSteps)
	}
	var text []byte
	var steps []wireStep
	for _, s := range l.Steps {
		w := wireStep{Op: s.op, Number: s.number, Value: s.value}
		for i, t := range s.text {
			if strings.ContainsRune(t, 0) {
				return nil, fmt.Errorf("%s: %q contains a NUL byte", s.Name, t)
			}
			if i < maxStrings {
				w.Text[i] = uint32(len(text))
			}
			text = append(append(text, t...), 0)
			if len(text) > maxText {
				return nil, &step.Error{Step: s.Name, Target: s.Target, Err: syscall.E2BIG}
			}
		}
		steps = append(steps, w)
	}
	header := [...]uint32{uint32(len(steps)), uint32(len(l.Filter) / instructionLen), uint32(len(text))}
	message, err := binary.Append(nil, binary.NativeEndian, header)
	if err == nil {
		message, err = binary.Append(message, binary.NativeEndian, steps)
	}
	return append(append(message, l.Filter...), text...), err
}

// stepError returns the error for the numbers of a report.
func (l *List) stepError(number uint32, errno syscall.Errno) error {
	switch {
	case number == maxSteps+1:
		return &step.Error{Step: "list", Err: errno}
	case int(number) > len(l.Steps):
		return ErrUnexpected
	}
	s := l.Steps[number-1]
	return &step.Error{Step: s.Name, Target: s.Target, Err: errno}
}
