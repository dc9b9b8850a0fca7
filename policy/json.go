package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

var errOmitted = errors.New("a scope that was left out has no JSON")

// Parse reads permissions from JSON, at most 1 MiB of it. It is strict: an unknown
// or repeated key, a null, an empty list or a bad pattern is a *[FormatError].
func Parse(text []byte) (Permissions, error) {
	var p Permissions
	if err := readAll(text, func(r *reader) { r.permissions(&p) }); err != nil {
		return Permissions{}, err
	}
	if err := p.Check(); err != nil {
		return Permissions{}, err
	}
	return p, nil
}

// UnmarshalJSON is [Parse].
func (p *Permissions) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(text)
	if err == nil {
		*p = parsed
	}
	return err
}

// MarshalJSON writes "allow", "deny" or an object with rules. A zero Scope is an
// error, since null would be one to read.
func (s Scope) MarshalJSON() ([]byte, error) {
	switch {
	case s.IsZero():
		return nil, errOmitted
	case s.Rules == nil:
		return json.Marshal(s.Default)
	}
	return json.Marshal(struct {
		Default Mode   `json:"default,omitempty"`
		Rules   []Rule `json:"rules"`
	}{s.Default, s.Rules})
}

// UnmarshalJSON reads one scope, as strictly as [Parse] but for what depends on
// which scope it is: [Permissions.Check] tells that.
func (s *Scope) UnmarshalJSON(text []byte) error {
	var parsed Scope
	err := readAll(text, func(r *reader) { parsed = r.scope("scope") })
	if err == nil {
		*s = parsed
	}
	return err
}

// UnmarshalJSON reads one rule, as strictly as [Scope.UnmarshalJSON].
func (r *Rule) UnmarshalJSON(text []byte) error {
	var parsed Rule
	err := readAll(text, func(rd *reader) { parsed = rd.rule("rule") })
	if err == nil {
		*r = parsed
	}
	return err
}

// readAll bounds the text and makes sure that it is one JSON value and no more,
// so that read meets no syntax error.
func readAll(text []byte, read func(*reader)) error {
	if len(text) > MaxText {
		return misplaced("", "more than %d bytes", MaxText)
	}
	if !utf8.Valid(text) {
		return misplaced("", "not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return misplaced(lineOf(text, err), "%v", err)
	}
	r := newReader(text)
	read(r)
	return r.err
}

// lineOf says where in the text a syntax error is, as editors count.
func lineOf(text []byte, err error) string {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return ""
	}
	before := text[:max(0, min(syntax.Offset, int64(len(text)))-1)]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
}
