package snippets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of the guest's report.
const (
	maxState  = 1 << 20 // bytes of facts and derived together
	maxReport = 4 << 20 // of its JSON, in which texts are escaped

	maxErrors    = 20
	maxErrorText = 8 << 10 // bytes of an error
)

// report is the report of harness.mjs. The guest can forge it.
type report struct {
	Facts   string   `json:"facts"`   // JSON
	Derived string   `json:"derived"` // JSON
	Errors  []string `json:"errors"`
}

var emptyObject = json.RawMessage("{}")

// addReport adds the guest's report to an output.
func (o *Output) addReport(text json.RawMessage, locate func(string) string) {
	var r report
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if text == nil || dec.Decode(&r) != nil {
		return
	}
	for _, e := range r.Errors {
		o.addError(locate(cut(e, maxErrorText)))
	}
	facts, ok := object(r.Facts)
	derived, derivedOK := object(r.Derived)
	if !ok || !derivedOK || len(facts)+len(derived) > maxState {
		o.addError("the state is not two objects of JSON, or is too large")
		return
	}
	o.Facts, o.Derived = facts, derived
}

// object returns the text of a JSON object in its compact form.
func object(text string) (json.RawMessage, bool) {
	var b bytes.Buffer
	if !strings.HasPrefix(text, "{") || !utf8.ValidString(text) || json.Compact(&b, []byte(text)) != nil {
		return nil, false
	}
	return b.Bytes(), true
}

// addProblem adds an error at a position.
func (o *Output) addProblem(p Problem) {
	if len(o.Errors) >= maxErrors {
		return
	}
	p.Message = cut(p.Message, maxErrorText)
	o.Problems = append(o.Problems, p)
	o.addError(fmt.Sprintf("%s:%d:%d — %s", p.Path, p.Line, p.Column, p.Message))
}

// addError adds an error, within the limits.
func (o *Output) addError(text string) {
	if len(o.Errors) >= maxErrors {
		return
	}
	o.Errors = append(o.Errors, cut(text, maxErrorText))
}

// cut shortens a text to a number of bytes, and marks that with an ellipsis.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
