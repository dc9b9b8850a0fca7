package agent

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"gaol/jail"
	"gaol/policy"
	"gaol/runtime/internal/sandbox"
	"gaol/vfs/hostfs"
)

// Bounds of messages, in bytes.
const (
	MaxRequest = 128 << 20 // to the agent: a Spec includes the guest's files
	MaxReply   = 1 << 20   // of the agent; larger outputs follow it as chunks or batches
	MaxCall    = 64 << 10  // a Call
)

// Write writes a message.
func Write(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// Read reads a message of at most some bytes. Memory is allocated as they arrive.
func Read(r io.Reader, most uint32, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > most {
		return fmt.Errorf("agent: a message of %d bytes, the limit is %d", size, most)
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(text) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// Request begins a stream.
type Request struct {
	Op string          `json:"op"`
	In json.RawMessage `json:"in,omitempty"`
}

// Reply is the reply to a request.
type Reply struct {
	Out   json.RawMessage `json:"out,omitempty"`
	Error *Error          `json:"error,omitempty"`
}

// Create is the input of the operation create.
type Create struct {
	Spec   sandbox.Spec `json:"spec"`
	Mounts []Mount      `json:"mounts,omitempty"`
}

// Mount is one of Spec.Mounts.
type Mount struct {
	Source string `json:"source"` // the agent's path
	sandbox.Mount
}

// Start is the input of the operation start.
type Start struct {
	Process uint64          `json:"process"` // a new number
	Command sandbox.Command `json:"command"`
	Args    []Text          `json:"args"` // of Command, as Env
	Env     []Text          `json:"env"`
	Files   []File          `json:"files"`

	// Whether the functions of the command are not nil.
	Denied, Connect, OnOwner, OnCommand bool
}

// File describes a file of a command. Its bytes are in a stream of the operation file.
type File struct {
	Kind     Kind   `json:"kind"`
	Terminal uint64 `json:"terminal,omitempty"` // the number of the operation terminal
}

// Kind is the kind of a file.
type Kind string

// The kinds.
const (
	In       Kind = "in"     // a pipe that the process reads
	Out      Kind = "out"    // a pipe that it writes
	Both     Kind = "both"   // a socket
	Memory   Kind = "memory" // a sealed file
	Null     Kind = "null"
	Terminal Kind = "terminal"
)

// FileOf identifies the stream of a file.
type FileOf struct {
	Process uint64 `json:"process"`
	Index   int    `json:"index"`
}

// Call is a message of the agent about a process. All but Exit wait for an Answer.
type Call struct {
	Denied  *policy.Denial  `json:"denied,omitempty"`
	Connect *netip.AddrPort `json:"connect,omitempty"`
	Owner   *uint64         `json:"owner,omitempty"`
	Command *CommandCall    `json:"command,omitempty"`
	Exit    *Exit           `json:"exit,omitempty"` // the last one
}

// CommandCall is a call of a command of the host, whose number other operations use.
type CommandCall struct {
	Name string `json:"name"`
	Call uint64 `json:"call"`
}

// Answer answers a Call.
type Answer struct {
	Allowed bool   `json:"allowed,omitempty"` // a connection
	Error   *Error `json:"error,omitempty"`
}

// Exit is how a process has ended.
type Exit struct {
	Exit  sandbox.Exit  `json:"exit"`
	Usage sandbox.Usage `json:"usage"`
	Error *Error        `json:"error,omitempty"`
}

// Text is text of a guest, such as a path, which need not be UTF-8. In JSON it is base64.
type Text string

// MarshalText implements [encoding.TextMarshaler].
func (t Text) MarshalText() ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString([]byte(t))), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Text) UnmarshalText(text []byte) error {
	data, err := base64.StdEncoding.DecodeString(string(text))
	*t = Text(data)
	return err
}

// Texts returns strings as texts, and Strings the reverse.
func Texts(list []string) []Text { return mapped(list, func(s string) Text { return Text(s) }) }

// Strings returns texts as strings.
func Strings(list []Text) []string { return mapped(list, func(t Text) string { return string(t) }) }

func mapped[From, To any](list []From, f func(From) To) []To {
	var out []To
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

// Error is an error that crosses the connection: its text, and the errors that it wraps.
type Error struct {
	Text  Text               `json:"text"`
	Errno syscall.Errno      `json:"errno,omitempty"`
	Is    []string           `json:"is,omitempty"` // keys of wrapped
	Op    string             `json:"op,omitempty"` // of an fs.PathError, with Path
	Path  Text               `json:"path,omitempty"`
	Step  *Step              `json:"step,omitempty"`
	Limit *hostfs.LimitError `json:"limit,omitempty"`
}

// Step is a [jail.StepError].
type Step struct{ Step, Target Text }

// wrapped are the errors that callers compare with.
var wrapped = map[string]error{
	"closed": sandbox.ErrClosed, "callSize": sandbox.ErrCallSize, "exist": fs.ErrExist, "notExist": fs.ErrNotExist, "permission": fs.ErrPermission,
	"invalid": fs.ErrInvalid, "fileClosed": os.ErrClosed, "processDone": os.ErrProcessDone, "connectionClosed": net.ErrClosed, "deadline": os.ErrDeadlineExceeded,
	"unsupported": errors.ErrUnsupported, "canceled": context.Canceled, "timeout": context.DeadlineExceeded, "eof": io.EOF,
	"skipDir": fs.SkipDir, "skipAll": fs.SkipAll, "special": hostfs.ErrSpecial, "changed": hostfs.ErrChanged, "notInMount": jail.ErrNotInMount,
}

// maxErrorText bounds a text of an error that the agent sends.
const maxErrorText = 4 << 10

// clip returns the beginning of a text, without the memory of the rest.
func clip(t Text) string { return strings.Clone(string(t[:min(len(t), maxErrorText)])) }

// Encode returns an error for the other side, nil for nil.
func Encode(err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{}
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // another error around it has more text
		e.Op, e.Path, err = p.Op, Text(p.Path), p.Err
	}
	e.Text = Text(err.Error())
	e.Errno, _ = errors.AsType[syscall.Errno](err)
	e.Limit, _ = errors.AsType[*hostfs.LimitError](err)
	if s, ok := errors.AsType[*jail.StepError](err); ok {
		e.Step = &Step{Text(s.Step), Text(s.Target)}
	}
	for name, target := range wrapped {
		if errors.Is(err, target) && (e.Errno == 0 || !e.Errno.Is(target)) {
			e.Is = append(e.Is, name)
		}
	}
	return e
}

// Decode returns an error of the other side, nil for nil.
func (e *Error) Decode() error {
	if e == nil {
		return nil
	}
	d := &decoded{text: clip(e.Text)}
	if e.Errno != 0 {
		d.is = append(d.is, e.Errno)
	}
	if e.Limit != nil {
		d.is = append(d.is, &hostfs.LimitError{What: clip(Text(e.Limit.What)), Limit: e.Limit.Limit})
	}
	if e.Step != nil {
		d.is = append(d.is, &jail.StepError{Step: clip(e.Step.Step), Target: clip(e.Step.Target), Err: d.cause()})
	}
	for _, name := range e.Is {
		if target := wrapped[name]; target != nil && len(d.is) < len(wrapped) {
			d.is = append(d.is, target)
		}
	}
	var err error = d
	if len(d.is) == 1 && d.is[0].Error() == d.text {
		err = d.is[0] // which callers may compare by ==
	}
	if e.Op != "" {
		err = &fs.PathError{Op: clip(Text(e.Op)), Path: clip(e.Path), Err: err}
	}
	return err
}

// decoded is an error of the other side.
type decoded struct {
	text string
	is   []error
}

// cause returns the first error that d wraps, or one with its text.
func (d *decoded) cause() error {
	if len(d.is) > 0 {
		return d.is[0]
	}
	return errors.New(d.text)
}

func (d *decoded) Error() string   { return d.text }
func (d *decoded) Unwrap() []error { return d.is }

func (n Number) number() Number { return n }

// Inputs and outputs of operations.
type (
	// Number identifies the process, terminal or call of an operation.
	Number struct {
		Number uint64 `json:"number"`
	}

	// Created is the output of create.
	Created struct {
		Missing []string `json:"missing"`
	}

	// Started is the output of start.
	Started struct {
		PID int `json:"pid"`
	}

	// Signal is the input of signal.
	Signal struct {
		Number
		Signal syscall.Signal `json:"signal"`
		Group  bool           `json:"group"`
	}

	// Size is the input of terminal and resize.
	Size struct {
		Number
		Size sandbox.TerminalSize `json:"size"`
	}

	// Most is the input of arguments and input of a call, whose output is chunks.
	Most struct {
		Number
		Most int64 `json:"most"`
	}

	// Output is the input of reply to a call.
	Output struct {
		Number
		Output, Errors []byte
		Status         uint8
	}

	// Deadline is the input of deadline of a call. It is a time from now, because clocks differ; 0 means never.
	Deadline struct {
		Number
		Within time.Duration `json:"within"`
	}

	// Dial is the input of dial.
	Dial struct {
		To     netip.AddrPort `json:"to"`
		Buffer int            `json:"buffer"`
	}

	// Owner is the input of owner.
	Owner struct {
		Network   string
		Guest, To netip.AddrPort
	}

	// Opened is the output of gateway.
	Opened struct {
		Listeners int        `json:"listeners"` // the last one is that of DNS
		Resolver  netip.Addr `json:"resolver"`
	}

	// Accepted is the output of accept, before the bytes of the connection.
	Accepted struct {
		Local, Remote netip.AddrPort
	}

	// Packet is a message of packets, in both directions.
	Packet struct {
		Peer netip.AddrPort
		Data []byte
	}

	// Room is the output of free.
	Room struct{ Disk, Files int64 }
)
