package strictjson

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// resultOptions encode as package encoding/json does, but never a list as null. They leave the escaping of <, > and &
// to the encoder that calls MarshalJSON.
var resultOptions = json.JoinOptions(jsonv1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), json.FormatNilSliceAsNull(false))

var (
	durations = json.MarshalToFunc(func(e *jsontext.Encoder, d time.Duration) error {
		return e.WriteToken(jsontext.Float(Milliseconds(d)))
	})
	decoding = json.JoinOptions(jsonv1.DefaultOptionsV1(), json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *time.Duration) error {
		var ms float64
		err := json.UnmarshalDecode(d, &ms)
		*to = time.Duration(ms * float64(time.Millisecond)).Round(time.Microsecond)
		return err
	})))
)

// MarshalResult encodes a struct without a method MarshalJSON. The functions more encode types in it differently.
func MarshalResult(v any, more ...*json.Marshalers) ([]byte, error) {
	return json.Marshal(v, resultOptions, json.WithMarshalers(json.JoinMarshalers(append(more, durations)...)))
}

// UnmarshalResult decodes into a struct without a method UnmarshalJSON.
func UnmarshalResult(text []byte, v any) error { return json.Unmarshal(text, v, decoding) }

// Milliseconds keeps three decimals: the rest is noise.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
