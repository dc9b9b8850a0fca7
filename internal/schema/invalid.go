package schema

import (
	"encoding/json"
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

// details describes invalid fields, at most 20.
func details(errs []error) (list []*huma.ErrorDetail) {
	for _, err := range errs[:min(len(errs), maxDetails)] {
		if d, ok := err.(huma.ErrorDetailer); ok {
			list = append(list, bounded(d.ErrorDetail()))
		} else if err != nil {
			list = append(list, bounded(&huma.ErrorDetail{Message: err.Error()}))
		}
	}
	return list
}

// bounded returns a detail without the value that was sent, which can be the whole body, unless that
// is short.
func bounded(d *huma.ErrorDetail) *huma.ErrorDetail {
	short := &huma.ErrorDetail{Message: cut(d.Message), Location: cut(d.Location)}
	switch v := d.Value.(type) {
	case string:
		if len(v) <= maxDetailText {
			short.Value = v
		}
	case bool, float64, json.Number:
		short.Value = v
	}
	return short
}

func cut(text string) string {
	if len(text) <= maxDetailText {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetailText], "") + "..."
}
