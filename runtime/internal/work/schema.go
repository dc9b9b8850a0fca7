package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// check is a JSON schema, and a value to check against it, unless that is nil.
type check struct {
	Schema []byte
	Value  []byte
}

// verdict is the error of a schema or of a value; both are empty if the value matches.
type verdict struct{ Schema, Value string }

var schemaOperation = define("check against a JSON schema", maxCheckTime, func(c check) verdict {
	var schema jsonschema.Schema
	err := json.Unmarshal(c.Schema, &schema)
	var resolved *jsonschema.Resolved
	if err == nil {
		resolved, err = schema.Resolve(nil)
	}
	if err != nil {
		return verdict{Schema: err.Error()}
	}
	if c.Value == nil {
		return verdict{}
	}
	var tree any
	if err = json.Unmarshal(c.Value, &tree); err == nil {
		err = resolved.Validate(tree)
	}
	if err != nil {
		return verdict{Value: err.Error()}
	}
	return verdict{}
})

// ErrSchema is wrapped by the error of a schema that is not valid.
var ErrSchema = errors.New("invalid schema")

// CheckSchema returns why text is not a JSON schema. It wraps [ErrSchema], or is a [*Failure], if
// that is the schema's fault.
func (d *Domain) CheckSchema(ctx context.Context, text []byte) error {
	return d.Validate(ctx, text, nil)
}

// MismatchError reports where a value does not match a schema.
type MismatchError struct{ Text string }

func (e *MismatchError) Error() string { return e.Text }

// maxCheckTime bounds a check: valid ones take milliseconds.
const maxCheckTime = 2 * time.Second

// Validate returns why a value does not match a JSON schema, as a [*MismatchError].
func (d *Domain) Validate(ctx context.Context, schema, value []byte) error {
	v, err := schemaOperation.do(ctx, d, check{schema, value})
	switch {
	case err != nil:
		return err
	case v.Schema != "":
		return fmt.Errorf("%w: %s", ErrSchema, v.Schema[:min(len(v.Schema), maxMessage)])
	case v.Value != "":
		return &MismatchError{v.Value[:min(len(v.Value), maxMessage)]}
	}
	return nil
}
