package resultjson

import (
	"encoding/json"
	"reflect"
	"time"

	"gaol/policy"
	"gaol/runtime"
)

// Forms returns the types that describe the JSON of types whose fields are not its members, for schemas.
func Forms() map[reflect.Type]reflect.Type {
	return map[reflect.Type]reflect.Type{
		reflect.TypeFor[runtime.Result]():     reflect.TypeFor[Run](),
		reflect.TypeFor[runtime.GuestError](): reflect.TypeFor[GuestError](),
		reflect.TypeFor[time.Duration]():      reflect.TypeFor[float64](),
		reflect.TypeFor[policy.Permissions](): reflect.TypeFor[json.RawMessage](), // without a schema: policy.Parse checks more
	}
}

type (
	// Run is the form of a [runtime.Result].
	Run struct {
		Stdout      string `json:"stdout"` // as text: invalid UTF-8 becomes U+FFFD
		Stderr      string `json:"stderr"`
		StdoutBytes []byte `json:"stdoutBytes,omitempty"` // absent for text
		StderrBytes []byte `json:"stderrBytes,omitempty"`
		RunFields
	}

	// RunFields are the fields of Run that the result has.
	RunFields runtime.Result

	// GuestError is the form of a [runtime.GuestError].
	GuestError struct {
		GuestErrorFields

		// Text is the message with the messages of the causes and the rule that denied the operation; absent
		// if it is "name: message".
		Text string `json:"text,omitempty"`
	}

	// GuestErrorFields are the fields of GuestError that the error has.
	GuestErrorFields runtime.GuestError
)
