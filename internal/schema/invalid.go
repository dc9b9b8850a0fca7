package schema

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// InvalidError lists the invalid parts of an input.
type InvalidError struct {
	Syntax  bool // the input is not JSON, or exceeds the bounds of all requests
	Details []*huma.ErrorDetail
}

// Error returns the first reason.
func (e *InvalidError) Error() string { return e.Details[0].Error() }

func syntaxError(err error) error {
	return &InvalidError{Syntax: true, Details: []*huma.ErrorDetail{{Message: err.Error()}}}
}

const (
	maxDetails    = 20
	maxDetailText = 300 // bytes
)

// details describes invalid fields, at most 20, without their values, which can be the whole body.
func details(errs []error) (list []*huma.ErrorDetail) {
	for _, err := range errs[:min(len(errs), maxDetails)] {
		d, ok := err.(huma.ErrorDetailer)
		if !ok {
			d = &huma.ErrorDetail{Message: err.Error()}
		}
		list = append(list, &huma.ErrorDetail{Message: cut(d.ErrorDetail().Message), Location: cut(d.ErrorDetail().Location)})
	}
	return list
}

func cut(text string) string {
	if len(text) <= maxDetailText {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetailText], "") + "..."
}
