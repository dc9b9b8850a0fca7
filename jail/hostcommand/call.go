package hostcommand

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrProtocol is wrapped by the errors for bytes that the program would not send.
var ErrProtocol = errors.New("not from gaol's own program")

// ErrSize is the error for arguments, or input, that are too large.
var ErrSize = errors.New("too large")

// Kinds of frames to the guest, as in src/command.c.
const (
	kindOutput = 1
	kindErrors = 2
	kindExit   = 3
	kindInput  = 4
)

// maxChunk is the maximum number of input bytes per frame.
const maxChunk = 64 << 10

// Call is the host's end of a call. It has one user at a time, except for Close.
type Call struct {
	requests, answers *os.File
}

// Ends are the guest's ends of the pipes of a call.
type Ends struct {
	Requests *os.File // it writes to
	Answers  *os.File // it reads from
}

// Close closes both. It may be called on the zero value.
func (e Ends) Close() {
	e.Requests.Close()
	e.Answers.Close()
}

// Open opens the pipes of a call. The guest's ends are in blocking mode. The caller closes both
// results.
func Open() (c *Call, guest Ends, err error) {
	c = &Call{}
	var err1, err2 error
	c.requests, guest.Requests, err1 = os.Pipe()
	guest.Answers, c.answers, err2 = os.Pipe()
	err = errors.Join(err1, err2)
	for _, f := range []*os.File{guest.Requests, guest.Answers} {
		if err == nil {
			err = os.NewSyscallError("fcntl", unix.SetNonblock(int(f.Fd()), false))
		}
	}
	if err != nil {
		c.Close() // files may be nil
		guest.Close()
		return nil, Ends{}, err
	}
	return c, guest, nil
}

// Close closes the host's ends: other methods then fail, and the program exits.
func (c *Call) Close() {
	c.requests.Close()
	c.answers.Close()
}

// SetDeadline sets the time at which calls of the methods fail. The zero time means never.
func (c *Call) SetDeadline(at time.Time) error {
	return errors.Join(c.requests.SetReadDeadline(at), c.answers.SetWriteDeadline(at))
}

// Arguments reads the arguments, which may have most bytes.
func (c *Call) Arguments(most int64) ([]string, error) {
	text, err := c.frame(most)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	all, ended := strings.CutSuffix(string(text), "\x00")
	if !ended {
		return nil, fmt.Errorf("%w: arguments without an end", ErrProtocol)
	}
	return strings.Split(all, "\x00"), nil
}

// Input asks for the standard input, and reads it until its end. It may have most bytes.
func (c *Call) Input(most int64) (all []byte, err error) {
	if _, err := c.answers.Write(appendFrame(nil, kindInput, 0, nil)); err != nil {
		return nil, err
	}
	for {
		part, err := c.frame(min(maxChunk, most-int64(len(all))))
		if err != nil || len(part) == 0 {
			return all, err
		}
		all = append(all, part...)
	}
}

// frame reads a frame of at most so many bytes.
func (c *Call) frame(most int64) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.requests, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > most {
		return nil, ErrSize
	}
	// The announced length is untrusted: the buffer grows only with the bytes that arrive.
	text, err := io.ReadAll(io.LimitReader(c.requests, int64(n)))
	if err == nil && len(text) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return text, err
}

// Wait returns when the program has ended. It sends nothing while it waits for its answer: if
// a guest does, Wait returns, too.
func (c *Call) Wait() {
	var one [1]byte
	_, _ = c.requests.Read(one[:])
}

// Reply sends the output, and the status with which the program exits.
func (c *Call) Reply(output, errors []byte, status uint8) error {
	var frames []byte
	if len(output) > 0 {
		frames = appendFrame(frames, kindOutput, uint32(len(output)), output)
	}
	if len(errors) > 0 {
		frames = appendFrame(frames, kindErrors, uint32(len(errors)), errors)
	}
	_, err := c.answers.Write(appendFrame(frames, kindExit, uint32(status), nil))
	return err
}

func appendFrame(to []byte, kind byte, n uint32, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(append(to, kind), n), text...)
}

// maxName bounds the length of a command's name.
const maxName = 64

// CheckName returns an error if a command can't have the name: it begins with one of a-z and
// 0-9, and has only these, dots, underscores and hyphens.
func CheckName(name string) error {
	for i, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && strings.IndexByte("._-", c) >= 0) {
			return fmt.Errorf("%q: a command's name has only a-z, 0-9, and, after the first, '.', '_' and '-'", name)
		}
	}
	if name == "" || len(name) > maxName {
		return fmt.Errorf("%q: a command's name has 1 to %d characters", name, maxName)
	}
	return nil
}

// Source is the C source of the program. It needs no C library, see [Flags].
//
//go:embed src/command.c
var Source string

// Flags are the compiler's flags for Source, which make a small static program. The last one
// keeps the compiler from calling functions of a C library that copy memory.
var Flags = []string{
	"-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
	"-Wl,-z,noseparate-code,--build-id=none", "-fno-tree-loop-distribute-patterns",
}

const (
	// Path is the path of the compiled program in an image.
	Path = "/usr/libexec/gaol/command"

	// Dir is the folder in a jail's tree in which the commands are.
	Dir = "/usr/libexec/gaol/commands"

	// Program is the name of the program in Dir. It is not a valid command: see [CheckName].
	Program = ".command"

	// MaxSize bounds the size of the program, in bytes.
	MaxSize = 64 << 10
)

// Family is the first argument of the socket call by which the program asks for the host. No
// kernel has such a family of addresses.
const Family = 0x67616f6c
