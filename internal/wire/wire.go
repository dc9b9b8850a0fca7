package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Version is the version of the protocol.
const Version = 2

// Kind is the kind of a frame.
type Kind byte

// The kinds of the guest's frames, and of the host's.
const (
	KindValue     Kind = 1
	KindLog       Kind = 2
	KindCall      Kind = 3
	KindFailure   Kind = 4
	KindDone      Kind = 5
	KindNoValue   Kind = 7
	KindOutput    Kind = 8
	KindTranslate Kind = 9

	KindAnswer    Kind = 16
	KindCell      Kind = 17
	KindInterrupt Kind = 18
)

// ErrFrame is wrapped by every error about data that a guest has sent.
var ErrFrame = errors.New("not a frame that gaol's own code writes")

// ErrDuplicateName is returned by ParseCall if an object in the arguments has two members
// with the same name: JSON does not define which of them a host function would see.
var ErrDuplicateName = errors.New("an object has two fields of one name")

const headSize = 4

// Reader reads the frames that a guest sends.
type Reader struct {
	from    *bufio.Reader
	maxBody func(Kind) int64
}

// NewReader returns a Reader that accepts bodies of at most maxBody(kind) bytes and
// rejects kinds for which that is 0. It buffers its input.
func NewReader(from io.Reader, maxBody func(Kind) int64) *Reader {
	return &Reader{bufio.NewReaderSize(from, 16<<10), maxBody}
}

// Buffered reports whether more than the last frame has been read from the input.
func (r *Reader) Buffered() bool { return r.from.Buffered() > 0 }

// Next reads a frame. The caller owns the body. The error is io.EOF at the end of input
// between two frames and io.ErrUnexpectedEOF inside a frame.
func (r *Reader) Next() (Kind, []byte, error) {
	head, err := r.from.Peek(headSize + 1)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	n, kind := int64(binary.BigEndian.Uint32(head))-1, Kind(head[headSize])
	if _, err := r.from.Discard(headSize + 1); err != nil {
		return 0, nil, err
	}
	switch limit := r.maxBody(kind); {
	case limit == 0:
		return 0, nil, fmt.Errorf("%w: kind %d", ErrFrame, kind)
	case n < 0 || n > limit:
		return 0, nil, fmt.Errorf("%w: %d bytes of kind %d, the limit is %d", ErrFrame, n, kind, limit)
	}
	body, err := r.body(n)
	return kind, body, err
}

// body reads n bytes. It allocates the size of the buffer, and doubles that whenever the
// guest has sent as much, because n is only the guest's claim.
func (r *Reader) body(n int64) ([]byte, error) {
	body := make([]byte, min(n, int64(r.from.Size())))
	for have := 0; ; {
		_, err := io.ReadFull(r.from, body[have:])
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if have = len(body); err != nil || int64(have) == n {
			return body, err
		}
		more := make([]byte, min(n, 2*int64(have)))
		copy(more, body)
		body = more
	}
}

// Append appends a frame whose body is the concatenation of the parts.
func Append(to []byte, kind Kind, parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	to = binary.BigEndian.AppendUint32(to, uint32(n))
	to = append(to, byte(kind))
	for _, p := range parts {
		to = append(to, p...)
	}
	return to
}

// AnswerSize is the size of an answer without its text.
const AnswerSize = headSize + 1 + 5

// AppendAnswer appends the answer to a call: a value or, if failed, the error.
func AppendAnswer(to []byte, call uint32, failed bool, text []byte) []byte {
	var head [5]byte
	binary.BigEndian.PutUint32(head[:], call)
	if failed {
		head[4] = 1
	}
	return Append(to, KindAnswer, head[:], text)
}

// AppendCell appends a cell.
func AppendCell(to []byte, cell uint32, text []byte) []byte {
	return Append(to, KindCell, binary.BigEndian.AppendUint32(nil, cell), text)
}

// AppendInterrupt appends a request to interrupt a cell.
func AppendInterrupt(to []byte, cell uint32) []byte {
	return Append(to, KindInterrupt, binary.BigEndian.AppendUint32(nil, cell))
}

// Call is a call of a host function.
type Call struct {
	ID       uint32
	Function uint32          // index in the list of functions that the guest was given
	Args     json.RawMessage // an array
}

// ParseCall parses the body of a call. Together with ErrDuplicateName it returns the call
// without its arguments, so that the caller knows which call failed. A guest can cause
// that error with names that differ in JavaScript only by lone surrogates, which Go cannot
// represent.
func ParseCall(body []byte) (Call, error) {
	const size = 8
	if len(body) < size {
		return Call{}, fmt.Errorf("%w: a call of %d bytes", ErrFrame, len(body))
	}
	c := Call{binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:]), body[size:]}
	switch {
	case len(c.Args) == 0 || c.Args[0] != '[' || !utf8.Valid(c.Args):
	case jsontext.Value(c.Args).IsValid(jsontext.AllowInvalidUTF8(true)): // invalid UTF-8 can only be in escapes here
		return c, nil
	case json.Valid(c.Args):
		c.Args = nil
		return c, ErrDuplicateName
	}
	return Call{}, fmt.Errorf("%w: a call whose arguments are not a JSON array", ErrFrame)
}

// ParseValue parses the body of a value.
func ParseValue(body []byte) (json.RawMessage, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return nil, fmt.Errorf("%w: a value that is not JSON", ErrFrame)
	}
	return body, nil
}

// Level is the console method that printed a line.
type Level byte

// The levels.
const (
	LevelDebug Level = iota + 1
	LevelLog
	LevelInfo
	LevelWarn
	LevelError
)

// ParseLog parses the body of a log. Invalid UTF-8 in the text becomes U+FFFD.
func ParseLog(body []byte) (Level, string, error) {
	if len(body) == 0 || Level(body[0]) < LevelDebug || Level(body[0]) > LevelError {
		return 0, "", fmt.Errorf("%w: a log without a level", ErrFrame)
	}
	return Level(body[0]), string(bytes.ToValidUTF8(body[1:], []byte("\uFFFD"))), nil
}

// Failure is an error that guest code threw, as the guest describes it.
type Failure struct {
	Name       string                     `json:"name"`
	Message    string                     `json:"message"`
	Stack      string                     `json:"stack"`
	Code       string                     `json:"code,omitempty"`
	Properties map[string]json.RawMessage `json:"properties,omitempty"`
	Cause      *Failure                   `json:"cause,omitempty"`
	Errors     []*Failure                 `json:"errors,omitempty"` // of an AggregateError or a SuppressedError
}

// Limits of a failure. The guest's half stays below them.
const (
	maxInner      = 64 // causes and errors
	maxProperties = 64
)

// ParseFailure parses the body of a failure.
func ParseFailure(body []byte) (Failure, error) {
	var f Failure
	if _, err := ParseValue(body); err != nil || body[0] != '{' {
		return f, fmt.Errorf("%w: a failure that is not a JSON object", ErrFrame)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return Failure{}, fmt.Errorf("%w: a failure: %w", ErrFrame, err)
	}
	if left := 1 + maxInner; !f.isBounded(&left) {
		return Failure{}, fmt.Errorf("%w: a failure with too many causes or properties", ErrFrame)
	}
	return f, nil
}

// isBounded reports whether a failure contains at most left failures, itself included.
func (f *Failure) isBounded(left *int) bool {
	if *left--; *left < 0 || len(f.Properties) > maxProperties || f.Cause != nil && !f.Cause.isBounded(left) {
		return false
	}
	return !slices.ContainsFunc(f.Errors, func(e *Failure) bool { return e == nil || !e.isBounded(left) })
}

// Stream is a standard stream to which the program itself has written.
type Stream byte

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// ParseOutput parses the body of an output frame: any bytes.
func ParseOutput(body []byte) (Stream, []byte, error) {
	if len(body) == 0 || Stream(body[0]) < Stdout || Stream(body[0]) > Stderr {
		return 0, nil, fmt.Errorf("%w: output without a stream", ErrFrame)
	}
	return Stream(body[0]), body[1:], nil
}

// ParseNoValue returns the body of a no-value frame: the reason why there is no value.
// Invalid UTF-8 becomes U+FFFD.
func ParseNoValue(body []byte) string { return string(bytes.ToValidUTF8(body, []byte("\uFFFD"))) }

// ParseDone parses the body of a done frame: the number of the cell that ended.
func ParseDone(body []byte) (cell uint32, err error) {
	if len(body) != 4 {
		return 0, fmt.Errorf("%w: a done of %d bytes", ErrFrame, len(body))
	}
	return binary.BigEndian.Uint32(body), nil
}

// Translation is a request to translate a file that the guest imports. It is answered like a call.
type Translation struct {
	ID     uint32
	Format TranslationFormat
	Path   string // of the file
	Config string // text of its tsconfig.json, if that matters; may be empty
	Source string
}

// TranslationFormat is the module format of a file.
type TranslationFormat byte

// The formats.
const (
	DetectFormat TranslationFormat = iota
	ModuleFormat
	CommonJSFormat
)

// ParseTranslation parses the body of a translate frame.
func ParseTranslation(body []byte) (Translation, error) {
	const size = 5
	if len(body) < size || TranslationFormat(body[4]) > CommonJSFormat {
		return Translation{}, fmt.Errorf("%w: a file without a format", ErrFrame)
	}
	parts := bytes.SplitN(body[size:], []byte{0}, 3)
	if len(parts) < 3 || !utf8.Valid(body[size:]) {
		return Translation{}, fmt.Errorf("%w: a file without its source", ErrFrame)
	}
	return Translation{binary.BigEndian.Uint32(body), TranslationFormat(body[4]), string(parts[0]), string(parts[1]), string(parts[2])}, nil
}
