package enter

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"gaol/jail/step"
)

// List is what the program does.
type List struct {
	Steps []Step

	// Files are the descriptors from 0 on of the program that the list executes.
	Files []*os.File

	// StartIn is the folder of the v2 cgroup that the program is started in; may be nil.
	StartIn *os.File

	// Filter is a classic BPF program, an array of struct sock_filter. The step of the
	// same name loads it.
	Filter []byte

	// OnListener is called with the listener that FilterWithListener creates, and owns
	// it, but not conn. Its other end is closed when the entry program has executed
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

// open returns the files of the program, by descriptor: those of List.Files, its end of the
// socket, and those of the steps, with those of later steps first. So each CloseOthers can
// close all above the ones that are still needed.
func (l *List) open(socket *os.File) []*os.File {
	files := append(slices.Clip(l.Files), socket)
	for i := range slices.Backward(l.Steps) {
		switch s := &l.Steps[i]; {
		case s.op == opClose:
			s.number = uint32(len(files))
		case s.file != nil:
			at := slices.Index(files, s.file)
			if at < 0 {
				at, files = len(files), append(files, s.file)
			}
			s.number = uint32(at)
		}
	}
	return files
}

// encode returns the message that src/protocol.c describes. It rejects lists that the
// program would reject with a less specific error.
func (l *List) encode() ([]byte, error) {
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
	message, _ := binary.Append(nil, binary.NativeEndian, header) // fails for other types only
	message, _ = binary.Append(message, binary.NativeEndian, steps)
	return slices.Concat(message, l.Filter, text), nil
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
