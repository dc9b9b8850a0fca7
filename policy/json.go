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

// Parse reads permissions from JSON, at most 1 MiB of it. It is strict: an unknown
// or repeated key, a null, an empty list or a bad pattern is a *[FormatError].
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
	err := decode(text, func(r *decoder) { parsed = r.scope("scope") })
	if err == nil {
		*s = parsed
	}
	return err
}

// UnmarshalJSON reads one rule, as strictly as [Scope.UnmarshalJSON].
func (r *Rule) UnmarshalJSON(text []byte) error {
	var parsed Rule
	err := decode(text, func(rd *decoder) { parsed = rd.rule("rule") })
	if err == nil {
		*r = parsed
	}
	return err
}

// decode bounds the text and makes sure that it is one JSON value and no more,
// so that read meets no syntax error.
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

// reader walks JSON that is known to be well-formed, token by token: package json
// itself takes any case of a key, the last of two and null for anything. After
// its first error it reads nothing more.
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

// list reads a list of at least one and at most most elements.
func (r *decoder) list(place string, most int, element func(place string)) {
	if r.token(place) != json.Delim('[') {
		r.fail(place, "not a list")
		return
	}
	n := 0
	for ; r.err == nil && r.dec.More(); n++ {
		if n == most {
			r.fail(place, fmt.Sprintf("more than %d", most))
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

// members reads an object from behind its brace.
func (r *decoder) members(place string, member func(place, key string)) {
	var seen []string
	for r.err == nil && r.dec.More() {
		key, _ := r.token(place).(string)
		at := truncate(key)
		if place != "" {
			at = place + "." + at
		}
		if slices.Contains(seen, key) {
			r.fail(at, "the key is there twice")
			return
		}
		seen = append(seen, key) // few: an unknown one ends the reading
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
