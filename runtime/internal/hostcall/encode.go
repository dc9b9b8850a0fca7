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
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"gaol/internal/strictjson"
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
	if i == AnyIntegers {
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
			return nil, &Error{Code: CodeResult, Message: fmt.Sprintf("%s: a JavaScript number cannot hold the integer %.40s: make it a string, or allow BigInts", strictjson.Join(name, strictjson.Path(d.StackPointer())), digits)}
		}
		end := int(d.InputOffset())
		converted = append(converted, text[copied:end-len(digits)]...)
		converted = append(converted, `{"\u0000bigint":"`+digits+`"}`...)
		copied = end
	}
}

// isExact reports whether JavaScript prints a number of JSON as it is, or it is no integer.
func isExact(digits string) bool {
	if len(digits) <= exactDigits || strings.ContainsAny(digits, ".eE") {
		return true
	}
	n, err := strconv.ParseFloat(digits, 64)
	return err == nil && strconv.FormatFloat(n, 'f', -1, 64) == digits
}
