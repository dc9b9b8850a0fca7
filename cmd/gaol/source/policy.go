package source

import (
	"context"
	"errors"
	"io"

	"gaol/policy"
)

// Policy reads permissions from r, which errors call name.
func Policy(ctx context.Context, r io.Reader, name string) (policy.Permissions, error) {
	text, err := Read(ctx, r, name, policy.MaxText)
	if err != nil {
		return policy.Permissions{}, err
	}
	p, err := policy.Parse(text)
	if bad, ok := errors.AsType[*policy.FormatError](err); ok {
		err = &formatError{name, bad}
	}
	return p, err
}

// formatError adds the name of the text to a FormatError.
type formatError struct {
	name string
	*policy.FormatError
}

func (e *formatError) Error() string {
	if e.Place == "" {
		return e.name + ": " + e.Why
	}
	return e.name + ": " + e.Place + ": " + e.Why
}

func (e *formatError) Unwrap() error { return e.FormatError }
