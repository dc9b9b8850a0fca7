package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

var errOmitted = errors.New("an omitted scope cannot be encoded as JSON")

// Parse parses permissions from at most 1 MiB of JSON. It is strict: unknown or repeated
// keys, null, empty lists and invalid patterns are a *[FormatError].
func Parse(text []byte) (Permissions, error) {
	type members Permissions // without UnmarshalJSON
	var m members
	if err := decode(text, "", &m); err != nil {
		return Permissions{}, err
	}
	p := Permissions(m)
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
	type members Scope // without MarshalJSON
	return json.Marshal(members(s))
}

// UnmarshalJSON parses one scope as strictly as [Parse], except for checks that depend on
// which scope it is: [Permissions.Check] does those.
func (s *Scope) UnmarshalJSON(text []byte) error { return decode(text, "scope", s) }

// strict makes json/v2, which rejects duplicate keys and other cases of a key, also reject
// null, which it accepts for any type.
var strict = jsonv2.JoinOptions(
	jsonv2.RejectUnknownMembers(true),
	jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		jsonv2.UnmarshalFromFunc(unmarshalScope), jsonv2.UnmarshalFromFunc(checkKind), jsonv2.UnmarshalFromFunc(unmarshalMode),
	)),
)

// checkKind rejects JSON of other kinds than a value's type.
func checkKind(d *jsontext.Decoder, value any) error {
	kind, why := jsontext.Kind('{'), "not an object"
	switch reflect.TypeOf(value).Elem().Kind() {
	case reflect.Slice:
		kind, why = '[', "not a list"
	case reflect.String:
		kind, why = '"', "not a string"
	}
	if d.PeekKind() != kind {
		return errors.New(why)
	}
	return errors.ErrUnsupported // json/v2 continues
}

func unmarshalScope(d *jsontext.Decoder, s *Scope) error {
	switch d.PeekKind() {
	case '"':
		return jsonv2.UnmarshalDecode(d, &s.Default)
	case '{':
		type members Scope // without UnmarshalJSON
		err := jsonv2.UnmarshalDecode(d, (*members)(s))
		if err == nil && s.Rules == nil {
			err = errors.New("rules missing")
		}
		return err
	}
	return errors.New("not allow, deny or an object with rules")
}

func unmarshalMode(d *jsontext.Decoder, m *Mode) error {
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	*m = Mode(t.String())
	return m.check()
}

// decode bounds the text, checks that it is exactly one JSON value, and parses it. root is
// the place of the value in errors. After an error, value is unchanged.
func decode[T any](text []byte, root string, value *T) error {
	if len(text) > MaxText {
		return formatError("", "more than %d bytes", MaxText)
	}
	var whole jsontext.Value
	var parsed T
	err := jsonv2.Unmarshal(text, &whole) // its syntax first
	if err == nil {
		err = jsonv2.Unmarshal(text, &parsed, strict)
	}
	var pointer jsontext.Pointer
	if semantic, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		pointer, err = semantic.JSONPointer, semantic.Err
	} else if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if pointer, err = syntactic.JSONPointer, syntactic.Err; !errors.Is(err, jsontext.ErrDuplicateName) {
			return formatError(lineOf(text, syntactic.ByteOffset), "%v", err)
		}
	}
	switch {
	case err == nil:
		*value = parsed
		return nil
	case errors.Is(err, jsonv2.ErrUnknownName):
		err = errors.New("unknown key")
	case errors.Is(err, jsontext.ErrDuplicateName):
		err = errors.New("the key is repeated")
	}
	return formatError(pathOf(root, pointer), "%v", err)
}

// pathOf formats a place as JavaScript does: fs.rules[1].paths[0].
func pathOf(root string, pointer jsontext.Pointer) string {
	for token := range pointer.Tokens() {
		if isIndex := strings.Trim(token, "0123456789") == ""; isIndex {
			root += "[" + token + "]"
		} else {
			root += "." + truncate(token)
		}
	}
	return strings.TrimPrefix(root, ".")
}

// lineOf returns the line and column of an offset, both counted from 1.
func lineOf(text []byte, offset int64) string {
	before := text[:min(offset, int64(len(text)))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
}

// object is part of a JSON Schema. Its keys are written in sorted order, so that the text
// is deterministic.
type object map[string]any

// Schema returns a JSON Schema, draft 2020-12, of the language that [Parse] reads, for
// editors and for models that write permissions. It is generated from the tables that
// Parse uses. Parse is stricter: it also validates patterns, which a schema cannot
// express.
func Schema() []byte {
	properties := object{}
	for _, info := range scopes {
		properties[info.name] = info.schema()
	}
	root := object{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"title":                "gaol permissions",
		"description":          "A guest's permissions. An omitted scope keeps its default.",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(root); err != nil {
		panic(err) // only maps, lists and strings: an error is a bug in this package
	}
	return out.Bytes()
}

func (s *scopeInfo) schema() object {
	rules := object{
		"description": "The last rule that matches decides.",
		"type":        "array", "minItems": 1, "maxItems": maxRules, "items": s.schemaRule(),
	}
	return object{
		"description": s.about,
		"oneOf": []object{
			modeSchema("The whole scope."),
			{
				"type":                 "object",
				"properties":           object{"default": modeSchema("Where no rule matches; deny if omitted."), "rules": rules},
				"required":             []string{"rules"},
				"additionalProperties": false,
			},
		},
	}
}

func (s *scopeInfo) schemaRule() object {
	var ops []object
	for _, o := range s.ops {
		ops = append(ops, object{"const": o.name, "description": o.about})
	}
	ops = append(ops, object{"const": everyOperation, "description": "all of the scope; the only entry"})
	if s.name == Network {
		ops = append(ops, object{"const": "http", "description": "the same as fetch"})
	}
	required := []string{"mode"}
	properties := object{
		"mode": modeSchema("Allow or deny the operations."),
		"operations": object{
			"description": "All of the scope if omitted.",
			"type":        "array", "minItems": 1, "uniqueItems": true, "items": object{"oneOf": ops},
		},
	}
	if s.key != "" {
		required = append(required, s.key)
		properties[s.key] = object{
			"description": "The resources that the rule decides.",
			"type":        "array", "minItems": 1, "maxItems": maxEntries,
			"items": object{"type": "string", "minLength": 1, "maxLength": maxPattern, "description": s.entries},
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func modeSchema(about string) object {
	return object{"enum": []Mode{Allow, Deny}, "description": about}
}
