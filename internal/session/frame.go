package session

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// Protocol is the WebSocket subprotocol: the name and version of the frames.
const Protocol = "gaol.v2"

// Bounds of a session.
const (
	// MaxFrame bounds a frame, in bytes.
	MaxFrame = 32 << 20

	// MaxFailure bounds the body of a failure, in bytes.
	MaxFailure = 1 << 20

	// MaxRequests bounds the requests without a result.
	MaxRequests = 256

	// MaxCalls bounds the calls of host functions that the client has not answered.
	MaxCalls = 1024

	// Window is how many bytes a sender may send on a stream before the receiver returns credit.
	Window = 256 << 10

	// MaxChunk bounds a frame of standard input, and is how long frames of output are.
	MaxChunk = 64 << 10

	// maxSignal bounds the name of a signal, in bytes.
	maxSignal = 16

	headSize   = 5
	creditSize = 5
)

// Kind is the kind of a frame.
type Kind byte

// The kinds.
const (
	KindRequest Kind = 1
	KindCancel  Kind = 2
	KindStdin   Kind = 3
	KindCredit  Kind = 4
	KindAnswer  Kind = 5
	KindFailure Kind = 6
	KindSignal  Kind = 7

	KindResult  Kind = 16
	KindError   Kind = 17
	KindStdout  Kind = 18
	KindStderr  Kind = 19
	KindEvent   Kind = 20
	KindCall    Kind = 21
	KindAbandon Kind = 22
)

// Stream is a stream of a request.
type Stream byte

// The streams.
const (
	Stdin Stream = iota
	Stdout
	Stderr
	Events
	Streams // their number
)

// Side is a side of a session.
type Side int

// The sides.
const (
	Client Side = iota
	Server
)

// ErrFrame is wrapped by errors about frames that the protocol does not allow.
var ErrFrame = errors.New("not a frame of " + Protocol)

// Frame is a frame.
type Frame struct {
	Kind Kind
	ID   uint32
	Body []byte

	// Refused is why [Socket.Receive] has dropped the body, nil if it has not.
	Refused error

	release func()
}

// Release ends the reservation of memory for the body of a received frame. Later calls have no effect.
func (f *Frame) Release() {
	if f.release != nil {
		f.release()
		f.release = nil
	}
}

// Append appends a frame whose body is the concatenation of the parts.
func Append(to []byte, kind Kind, id uint32, parts ...[]byte) []byte {
	to = append(to, byte(kind))
	to = binary.BigEndian.AppendUint32(to, id)
	for _, p := range parts {
		to = append(to, p...)
	}
	return to
}

// AppendCredit appends a frame that returns credit for bytes of a stream.
func AppendCredit(to []byte, id uint32, s Stream, bytes uint32) []byte {
	return Append(to, KindCredit, id, []byte{byte(s)}, binary.BigEndian.AppendUint32(nil, bytes))
}

// bounds are the lengths that a body may have.
type bounds struct{ least, most int }

// bodies are the bounds of bodies, by sender and kind.
var bodies = [2]map[Kind]bounds{
	Client: {
		KindRequest: {2, MaxFrame},
		KindCancel:  {0, 0},
		KindStdin:   {0, MaxChunk},
		KindCredit:  {creditSize, creditSize},
		KindAnswer:  {1, MaxFrame},
		KindFailure: {2, MaxFailure},
		KindSignal:  {1, maxSignal},
	},
	Server: {
		KindResult:  {1, MaxFrame},
		KindError:   {2, MaxFrame},
		KindStdout:  {1, MaxFrame},
		KindStderr:  {1, MaxFrame},
		KindEvent:   {2, MaxFrame},
		KindCall:    {4 + 2, MaxFrame},
		KindAbandon: {0, 0},
		KindCredit:  {creditSize, creditSize},
	},
}

// Parse parses a message that a side has sent.
func Parse(from Side, message []byte) (Frame, error) {
	return (&Socket{Peer: from}).frame(bytes.NewReader(message))
}

// check checks a frame's body.
func (f Frame) check(from Side, size bounds) error {
	if len(f.Body) < size.least || len(f.Body) > size.most {
		return fmt.Errorf("%w: kind %d with a body of %d bytes, want %d to %d", ErrFrame, f.Kind, len(f.Body), size.least, size.most)
	}
	if f.Kind == KindCredit {
		if s := Stream(f.Body[0]); s >= Streams || (s == Stdin) != (from == Server) {
			return fmt.Errorf("%w: credit for stream %d", ErrFrame, s)
		}
	}
	return nil
}

// Credit parses the body of a credit frame, which [Parse] has checked.
func (f Frame) Credit() (s Stream, bytes uint32) {
	return Stream(f.Body[0]), binary.BigEndian.Uint32(f.Body[1:])
}

// Call parses the body of a call, which [Parse] has checked: the function's number and the
// arguments.
func (f Frame) Call() (function uint32, arguments []byte) {
	return binary.BigEndian.Uint32(f.Body), f.Body[4:]
}

// Stream returns the stream that a frame belongs to, and whether it belongs to one.
func (k Kind) Stream() (s Stream, ok bool) {
	switch k {
	case KindStdin:
		return Stdin, true
	case KindStdout:
		return Stdout, true
	case KindStderr:
		return Stderr, true
	case KindEvent:
		return Events, true
	}
	return 0, false
}

// Request is the body of a request.
type Request struct {
	Method string          `json:"method"`           // the name of an operation
	Params json.RawMessage `json:"params,omitempty"` // its input, an object

	// Stdin announces that standard input follows in frames. Operations that carry data always have it.
	Stdin bool `json:"stdin,omitempty"`

	// Events asks for events, which have the output of a run, and makes a request that starts a
	// process or a context last until its end.
	Events bool `json:"events,omitempty"`

	// Host is a [Host], if the client has functions for programs.
	Host json.RawMessage `json:"host,omitempty"`

	// Detached makes a sandbox outlive the session.
	Detached bool `json:"detached,omitempty"`
}

// Host declares the functions of a client that programs can call.
type Host struct {
	Functions []Function `json:"functions,omitempty" maxItems:"1024" doc:"Functions in the global scope, or in objects of it."`
	Commands  []Command  `json:"commands,omitzero" maxItems:"1024" doc:"Programs of the sandbox. With an empty list, addCommands can add some."`
	Calls     CallLimits `json:"calls,omitzero"`
}

// Event is the body of an event. Output is not an event: it is sent in stdout and stderr frames.
type Event struct {
	Event string          `json:"event"` // its name
	Data  json.RawMessage `json:"data"`
}

// Problem is the body of an error, with the fields of the HTTP API's problems (RFC 9457).
type Problem struct {
	Status       int                                  `json:"status"`
	Code         string                               `json:"code"`
	Detail       string                               `json:"detail,omitempty"`
	RetryAfterMs int64                                `json:"retryAfterMs,omitempty"` // when the request may succeed
	Errors       []struct{ Message, Location string } `json:"errors,omitempty"`       // which fields are invalid
}

// Failure is the body of a failure: the error of a host function, as the guest sees it.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// Function declares a host function of the client.
type Function struct {
	ID     uint32          `json:"id" minimum:"1" doc:"The number of the function in calls. The client chooses it."`
	Path   []string        `json:"path" minItems:"1" maxItems:"16" doc:"Where programs find the function: the name of a global, and names inside it."`
	Async  bool            `json:"async,omitempty" doc:"In programs, the function returns a promise. By default a call blocks the program until its answer."`
	Schema json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the arguments, as an array. The server rejects calls that do not match."`
}

// Command declares a program of the sandbox that calls the client.
type Command struct {
	ID    uint32 `json:"id" minimum:"1" doc:"The number of the command in calls, as for functions."`
	Name  string `json:"name" pattern:"^[a-z0-9][a-z0-9._-]*$" maxLength:"64" doc:"The name of the program."`
	Stdin bool   `json:"stdin,omitempty" doc:"Read the program's standard input until its end, and send it with the call."`
}

// CommandCall is the only argument of a command's call.
type CommandCall struct {
	Args  []string `json:"args"`
	Stdin string   `json:"stdin"`
}

// CommandResult is the answer to a command's call.
type CommandResult struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode int    `json:"exitCode"`
}

// CallLimits bound the calls of host functions that a run can make. Zero means the default.
type CallLimits struct {
	Calls      int   `json:"calls,omitempty" minimum:"0" maximum:"1000000" doc:"Calls of one run. By default 100,000, for snippets 50."`
	Concurrent int   `json:"concurrent,omitempty" minimum:"0" maximum:"1024" doc:"Concurrent calls of one run. By default 16."`
	Arguments  int64 `json:"argumentsBytes,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of the JSON of a call's arguments. By default 1 MiB."`
	Result     int64 `json:"resultBytes,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of the JSON of a result. By default 4 MiB."`
	TimeoutMs  int64 `json:"timeoutMs,omitempty" minimum:"0" maximum:"3600000" doc:"Wall-clock time of a call. By default 30,000."`
}
