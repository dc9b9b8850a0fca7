package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

var errOmitted = errors.New("a scope that was left out has no JSON")

// Parse parses permissions from at most 1 MiB of JSON. It is strict: unknown or repeated
// keys, null, empty lists and invalid patterns are a *[FormatError].
func Parse(text []byte) (Permissions, error) {
	var p Permissions
	if err := decode(text, func(r *decoder) { r.permissions(&p) }); err != nil {
		return Permissions{}, err
	}
	if err := p.Check(); err != nil {
		return Permissions{}, err
	}
	return p, nil
}

// UnmarshalJSON calls [Parse].
func (p *Permissions) UnmarshalJSON(text []byte) error {
	parsed, err := Parse(text)
	if err == nil {
		*p = parsed
	}
	return err
}

// MarshalJSON writes "allow", "deny" or an object with rules. A zero Scope is an error,
// because its JSON would be null, which [Parse] rejects.
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

// UnmarshalJSON parses one scope as strictly as [Parse], except for checks that depend on
// which scope it is: [Permissions.Check] does those.
func (s *Scope) UnmarshalJSON(text []byte) error {
	var parsed Scope
	err := decode(text, func(r *decoder) { parsed = r.scope("scope") })
	if err == nil {
		*s = parsed
	}
	return err
}

// UnmarshalJSON parses one rule, as strictly as [Scope.UnmarshalJSON].
func (r *Rule) UnmarshalJSON(text []byte) error {
	var parsed Rule
	err := decode(text, func(rd *decoder) { parsed = rd.rule("rule") })
	if err == nil {
		*r = parsed
	}
	return err
}

// decode bounds the text and checks that it is exactly one JSON value, so that read cannot
// meet a syntax error.
func decode(text []byte, read func(*decoder)) error {
	if len(text) > MaxText {
		return formatError("", "more than %d bytes", MaxText)
	}
	if !utf8.Valid(text) {
		return formatError("", "not UTF-8")
	}
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return formatError(lineOf(text, err), "%v", err)
	}
	r := newDecoder(text)
	read(r)
	return r.err
}

// lineOf returns the line and column of a syntax error, both counted from 1.
func lineOf(text []byte, err error) string {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return ""
	}
	before := text[:max(0, min(syntax.Offset, int64(len(text)))-1)]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
}

// decoder reads well-formed JSON token by token, because package json accepts any case of
// a key, the last of two equal keys, and null for anything. It stops at its first error.
type decoder struct {
	dec *json.Decoder
	err error
}

func newDecoder(text []byte) *decoder {
	return &decoder{dec: json.NewDecoder(bytes.NewReader(text))}
}

func (r *decoder) permissions(p *Permissions) {
	r.object("", func(place, key string) {
		info := scopeNamed(key)
		if info == nil {
			r.fail(place, "unknown key")
			return
		}
		*info.of(p) = r.scope(place)
	})
}

func (r *decoder) scope(place string) (s Scope) {
	switch t := r.token(place).(type) {
	case string:
		s.Default = r.mode(place, t)
	case json.Delim:
		if t != '{' {
			r.fail(place, "not allow, deny or an object with rules")
			return s
		}
		r.members(place, func(at, key string) {
			switch key {
			case "default":
				s.Default = r.mode(at, r.text(at))
			case "rules":
				s.Rules = r.rules(at)
			default:
				r.fail(at, "unknown key")
			}
		})
		if s.Rules == nil {
			r.fail(place, "rules missing")
		}
	default:
		r.fail(place, "not allow, deny or an object with rules")
	}
	return s
}

func (r *decoder) rules(place string) []Rule {
	var rules []Rule
	r.list(place, maxRules, func(at string) { rules = append(rules, r.rule(at)) })
	return rules
}

func (r *decoder) rule(place string) (rule Rule) {
	r.object(place, func(at, key string) {
		switch key {
		case "mode":
			rule.Mode = r.mode(at, r.text(at))
		case "operations":
			for _, s := range r.texts(at) {
				rule.Operations = append(rule.Operations, Operation(s))
			}
		case "paths":
			rule.Paths = r.texts(at)
		case "patterns":
			rule.Patterns = r.texts(at)
		default:
			r.fail(at, "unknown key")
		}
	})
	if rule.Mode == "" {
		r.fail(place, "mode missing")
	}
	return rule
}

func (r *decoder) mode(place, s string) Mode {
	if err := checkMode(place, Mode(s)); err != nil && r.err == nil {
		r.err = err
	}
	return Mode(s)
}

func (r *decoder) texts(place string) []string {
	var list []string
	r.list(place, maxEntries, func(at string) { list = append(list, r.text(at)) })
	return list
}

func (r *decoder) text(place string) string {
	s, ok := r.token(place).(string)
	if !ok {
		r.fail(place, "not a string")
	}
	return s
}

// list reads a list of 1 to limit elements.
func (r *decoder) list(place string, limit int, element func(place string)) {
	if r.token(place) != json.Delim('[') {
		r.fail(place, "not a list")
		return
	}
	n := 0
	for ; r.err == nil && r.dec.More(); n++ {
		if n == limit {
			r.fail(place, fmt.Sprintf("more than %d", limit))
			return
		}
		element(fmt.Sprintf("%s[%d]", place, n))
	}
	r.token(place)
	if n == 0 {
		r.fail(place, "empty list")
	}
}

func (r *decoder) object(place string, member func(place, key string)) {
	if r.token(place) != json.Delim('{') {
		r.fail(place, "not an object")
		return
	}
	r.members(place, member)
}

// members reads the members of an object whose brace has been read.
func (r *decoder) members(place string, member func(place, key string)) {
	var seen []string
	for r.err == nil && r.dec.More() {
		key, _ := r.token(place).(string)
		at := truncate(key)
		if place != "" {
			at = place + "." + at
		}
		if slices.Contains(seen, key) {
			r.fail(at, "the key is repeated")
			return
		}
		seen = append(seen, key) // stays short: an unknown key stops the decoder
		member(at, key)
	}
	r.token(place)
}

func (r *decoder) token(place string) json.Token {
	if r.err != nil {
		return nil
	}
	t, err := r.dec.Token()
	if err != nil {
		r.fail(place, err.Error())
	}
	return t
}

func (r *decoder) fail(place, why string) {
	if r.err == nil {
		r.err = &FormatError{Place: place, Why: why}
	}
}
