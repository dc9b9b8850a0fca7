package hostcall

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"gaol/internal/strictjson"
	"gaol/internal/wire"
)

// Names of the wrappers for values that JSON lacks, with that of [Integers]. The guest's wire.cjs has them, too.
const (
	bytesName = "\x00bytes"
	dateName  = "\x00date"
)

// jsonOptions are the defaults of encoding/json, except for bytes and times.
var jsonOptions = jsonx.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsontext.EscapeForHTML(false),
	jsonx.WithMarshalers(jsonx.JoinMarshalers(
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, b []byte) error {
			if b == nil {
				return e.WriteToken(jsontext.Null)
			}
			return writeForm(e, bytesName, base64.StdEncoding.EncodeToString(b))
		}),
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
			if isKey(e) {
				return errors.ErrUnsupported // as encoding/json does
			}
			text, err := dateText(t.UTC())
			if err != nil {
				return err
			}
			return writeForm(e, dateName, text)
		}),
		jsonx.MarshalToFunc(func(e *jsontext.Encoder, n json.Number) error {
			if isKey(e) {
				return errors.ErrUnsupported // as encoding/json does
			}
			return e.WriteValue(jsontext.Value(cmp.Or(n, "0")))
		}),
	)),
)

// isKey reports whether the next token is a key of an object, which must be a string.
func isKey(e *jsontext.Encoder) bool {
	kind, n := e.StackIndex(e.StackDepth())
	return kind == '{' && n%2 == 0
}

// dateText returns a time as JavaScript's Date reads it, which wants a sign and six digits for
// years without four digits.
func dateText(t time.Time) (string, error) {
	const most = 271_820 // the last whole year of a Date, before and after the year 0
	year := t.Year()
	switch {
	case year >= 0 && year <= 9999:
		return t.Format("2006-01-02T15:04:05.000Z"), nil
	case year >= -most && year <= most:
		return fmt.Sprintf("%+07d%s", year, t.Format("-01-02T15:04:05.000Z")), nil
	}
	return "", fmt.Errorf("the year %d is outside the range of a Date", year)
}

func writeForm(e *jsontext.Encoder, name, text string) error {
	for _, token := range []jsontext.Token{jsontext.BeginObject, jsontext.String(name), jsontext.String(text), jsontext.EndObject} {
		if err := e.WriteToken(token); err != nil {
			return err
		}
	}
	return nil
}

// Encode returns a value as the guest reads it: JSON in which bytes and times have forms of
// their own, and integers are treated as requested. Errors begin with name.
func Encode(name string, v any, as Integers) (json.RawMessage, error) {
	text, err := jsonx.Marshal(v, jsonOptions)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return as.convert(name, text)
}

// Integers is what becomes of integers that a JavaScript number cannot hold.
type Integers int

const (
	RefuseIntegers Integers = iota // an error names their path
	BigInts                        // BigInts
	AnyIntegers                    // numbers of JSON, for another process that decides
)

// NewIntegers returns BigInts, or RefuseIntegers.
func NewIntegers(bigInts bool) Integers {
	if bigInts {
		return BigInts
	}
	return RefuseIntegers
}

// exactDigits is how many digits an integer can have that a JavaScript number always holds.
const exactDigits = 15

// convert applies i to the integers of a text of JSON.
func (i Integers) convert(name string, text []byte) ([]byte, error) {
	if i == AnyIntegers || !hasDigits(text, exactDigits+1) {
		return text, nil
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var converted []byte
	copied := 0
	for {
		token, err := d.ReadToken()
		if err == io.EOF {
			return append(converted, text[copied:]...), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if token.Kind() != '0' {
			continue
		}
		digits := token.String()
		switch {
		case isExact(digits):
			continue
		case i == RefuseIntegers:
			return nil, &Error{Code: CodeResult, Message: fmt.Sprintf("%s: a JavaScript number cannot hold the integer %.40s: make it a string, or allow BigInts", strictjson.Join(name, strictjson.Path(d)), digits)}
		}
		end := int(d.InputOffset())
		converted = append(converted, text[copied:end-len(digits)]...)
		converted = append(converted, `{"\u0000bigint":"`+digits+`"}`...)
		copied = end
	}
}

func hasDigits(text []byte, n int) bool {
	run := 0
	for _, c := range text {
		run++
		if c < '0' || c > '9' {
			run = 0
		}
		if run == n {
			return true
		}
	}
	return false
}

// isExact reports whether JavaScript prints a number of JSON as it is, or it is no integer.
func isExact(digits string) bool {
	if len(digits) <= exactDigits || strings.ContainsAny(digits, ".eE") {
		return true
	}
	n, err := strconv.ParseFloat(digits, 64)
	return err == nil && strconv.FormatFloat(n, 'f', -1, 64) == digits
}

const (
	// maxBatch is how many bytes of frames may wait to be written: the size of a pipe.
	maxBatch = 64 << 10

	// maxUnsent is the same for frames of callers that cannot wait. A guest that causes more
	// does not read its answers: its half allows at most 256 pending calls.
	maxUnsent = 256 << 10
)

// Writer writes frames to a guest. A caller that finds no other writing writes, and continues
// with the frames that others add meanwhile: a guest with many calls gets many answers in
// one write, and wakes up once.
type Writer struct {
	to io.WriteCloser

	mu      sync.Mutex
	written sync.Cond
	waiting []byte // frames to be written next
	writing bool
	blocked int // callers that wait until something is written
	closed  bool
}

// NewWriter returns a writer to a pipe.
func NewWriter(to io.WriteCloser) *Writer {
	w := &Writer{to: to}
	w.written.L = &w.mu
	return w
}

// Answer writes the answer to a call, as Send does.
func (w *Writer) Answer(call uint32, failed bool, text []byte) {
	w.Send(wire.AppendAnswer(make([]byte, 0, len(text)+wire.AnswerSize), call, failed, text))
}

// Send writes a frame. It returns when the kernel has it, or when it is among at most maxBatch
// bytes that wait.
func (w *Writer) Send(frame []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wait(len(frame)) {
		w.write(frame)
	}
}

// TryAnswer is Answer for a caller that must not wait for the guest. It reports whether
// there was room.
func (w *Writer) TryAnswer(call uint32, failed bool, text []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.waiting)+len(text)+wire.AnswerSize > maxUnsent {
		return w.closed
	}
	w.waiting = wire.AppendAnswer(w.waiting, call, failed, text)
	if !w.writing {
		w.writing = true
		go func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.flush(nil)
		}()
	}
	return true
}

// Close closes the pipe; a write that blocks fails. It may be called on nil.
func (w *Writer) Close() {
	if w != nil {
		w.to.Close()
	}
}

// wait waits until a frame of the given size fits in the batch, or until no caller is writing. It
// returns false once nothing can be written.
func (w *Writer) wait(size int) bool {
	for !w.closed && w.writing && len(w.waiting)+size > maxBatch {
		w.blocked++
		w.written.Wait()
		w.blocked--
	}
	return !w.closed
}

// write writes what waits and then the caller's frame.
//
// Preconditions: w.mu is held, wait returned true.
func (w *Writer) write(own []byte) {
	if w.writing {
		w.waiting = append(w.waiting, own...)
		return
	}
	w.writing = true
	w.flush(own)
}

// flush writes for all callers until nothing waits or another one wants to write.
//
// Preconditions: w.mu is held, w.writing is the caller's.
func (w *Writer) flush(own []byte) {
	w.flushWaiting()
	w.writeUnlocked(own)
	for w.blocked == 0 && len(w.waiting) > 0 {
		w.flushWaiting()
	}
	w.writing = false
	w.written.Broadcast()
}

func (w *Writer) flushWaiting() {
	batch := w.waiting
	w.waiting = nil
	w.writeUnlocked(batch)
}

// writeUnlocked writes without the lock.
func (w *Writer) writeUnlocked(b []byte) {
	if len(b) == 0 {
		return
	}
	if !w.closed {
		w.mu.Unlock()
		_, err := w.to.Write(b)
		w.mu.Lock()
		if err != nil {
			w.closed, w.waiting = true, nil
			w.to.Close() // a frame may be incomplete: no other can follow it
		}
	}
	w.written.Broadcast()
}
