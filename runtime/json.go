package runtime

import (
	"strings"
	"time"
	"unicode/utf8"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gaol/internal/strictjson"
)

// The types without methods, which package strictjson encodes by their tags.
type (
	plainResult     Result
	plainEvaluation Evaluation
	plainUsage      Usage
	plainLog        Log
	plainConnection Connection
	plainGuestError GuestError
)

// resultForm is the form of a Result in JSON. Output as text has U+FFFD for invalid UTF-8; then the bytes are beside it.
type resultForm struct {
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes []byte `json:"stdoutBytes,omitempty"` // stdout, if it is not UTF-8
	StderrBytes []byte `json:"stderrBytes,omitempty"` // stderr, if it is not UTF-8
	plainResult
}

// guestErrorForm is the form of a GuestError in JSON.
type guestErrorForm struct {
	plainGuestError

	// Text is the message with the messages of the causes and the rule that denied the operation; absent
	// if it is "name: message".
	Text string `json:"text,omitempty"`
}

// withoutFrame encodes the errors of programs, which have no frame: snippets alone have one.
var withoutFrame = json.MarshalToFunc(func(e *jsontext.Encoder, g GuestError) error {
	return json.MarshalEncode(e, struct {
		guestErrorForm
		Frame string `json:"frame,omitempty"`
	}{guestErrorForm: g.form()})
})

// MarshalJSON returns the object that gaol run --json prints.
func (r Result) MarshalJSON() ([]byte, error) {
	f := resultForm{Stdout: string(r.Stdout), Stderr: string(r.Stderr), plainResult: plainResult(r)}
	if !utf8.Valid(r.Stdout) {
		f.StdoutBytes = r.Stdout
	}
	if !utf8.Valid(r.Stderr) {
		f.StderrBytes = r.Stderr
	}
	if f.Queued < time.Millisecond { // a turn without a wait takes some microseconds
		f.Queued = 0
	}
	return strictjson.MarshalResult(&f, withoutFrame)
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (r *Result) UnmarshalJSON(text []byte) error {
	var f resultForm
	if err := strictjson.UnmarshalResult(text, &f); err != nil {
		return err
	}
	*r = Result(f.plainResult)
	r.Stdout, r.Stderr = f.StdoutBytes, f.StderrBytes
	if r.Stdout == nil {
		r.Stdout = []byte(f.Stdout)
	}
	if r.Stderr == nil {
		r.Stderr = []byte(f.Stderr)
	}
	return nil
}

func (e *GuestError) form() guestErrorForm {
	f := guestErrorForm{plainGuestError: plainGuestError(*e)}
	if text := e.Error(); text != strings.TrimPrefix(e.Name+": "+e.Message, ": ") {
		f.Text = text
	}
	return f
}

// MarshalJSON implements [json.Marshaler].
func (e *GuestError) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(e.form()) }

// UnmarshalJSON implements [json.Unmarshaler].
func (e *GuestError) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainGuestError)(e))
}

// MarshalJSON returns the object that gaol eval --json prints.
func (e Evaluation) MarshalJSON() ([]byte, error) {
	return strictjson.MarshalResult((*plainEvaluation)(&e))
}

// UnmarshalJSON decodes what MarshalJSON returns.
func (e *Evaluation) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainEvaluation)(e))
}

// MarshalJSON implements [json.Marshaler].
func (u Usage) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(plainUsage(u)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (u *Usage) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainUsage)(u))
}

// MarshalJSON implements [json.Marshaler].
func (l Log) MarshalJSON() ([]byte, error) { return strictjson.MarshalResult(plainLog(l)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (l *Log) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainLog)(l))
}

// MarshalJSON implements [json.Marshaler].
func (c Connection) MarshalJSON() ([]byte, error) {
	return strictjson.MarshalResult(plainConnection(c))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Connection) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainConnection)(c))
}
