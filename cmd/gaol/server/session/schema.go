package session

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"gaol/runtime"
)

// Bounds of checking arguments. A schema and what it checks come from strangers, and the time that a
// check takes grows with the product of their sizes.
const (
	maxSchema = 16 << 10
	maxChecks = 64 << 20
)

// argumentCheck checks arguments of a function. The zero value accepts all.
type argumentCheck struct {
	size   int // of the schema's text
	schema *jsonschema.Resolved
}

// newArgumentCheck returns the check for a schema, which may be empty.
func newArgumentCheck(text json.RawMessage) (argumentCheck, error) {
	if len(text) == 0 {
		return argumentCheck{}, nil
	}
	if len(text) > maxSchema {
		return argumentCheck{}, fmt.Errorf("a schema of %d bytes, the limit is %d", len(text), maxSchema)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return argumentCheck{}, err
	}
	if err := checkKeywords(tree); err != nil {
		return argumentCheck{}, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return argumentCheck{}, fmt.Errorf("the schema: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	return argumentCheck{len(text), resolved}, err
}

// slow are the keywords whose checks can take more time than the sizes say.
var slow = map[string]bool{"$ref": true, "$dynamicRef": true, "pattern": true, "patternProperties": true}

func checkKeywords(tree any) error {
	switch tree := tree.(type) {
	case map[string]any:
		for name, inner := range tree {
			if slow[name] {
				return fmt.Errorf("a schema with %s, which the server does not support", name)
			}
			if err := checkKeywords(inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range tree {
			if err := checkKeywords(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// validate checks arguments. The error is for the program.
func (c argumentCheck) validate(args json.RawMessage) error {
	if c.schema == nil {
		return nil
	}
	err := c.check(args)
	if err != nil {
		return &runtime.CallError{Code: runtime.CodeArguments, Message: "the arguments: " + err.Error()}
	}
	return nil
}

func (c argumentCheck) check(args json.RawMessage) error {
	if c.size*len(args) > maxChecks {
		return errors.New("too large to check against the function's schema")
	}
	var tree any
	if err := json.Unmarshal(args, &tree); err != nil {
		return err
	}
	return c.schema.Validate(tree)
}
