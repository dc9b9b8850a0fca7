package sandboxtools

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gaol/internal/lazyregexp"
)

// patterns are the patterns that rules name. They accept an empty text, for arguments that
// can be omitted.
var patterns = map[string]func() *regexp.Regexp{
	"name": lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9_.-]*)?$`),
	"root": lazyregexp.New(`^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$`),
	"env":  lazyregexp.New(`(?s)^[^=]+=`),
}

// field describes an argument of a tool, or a field of a result.
type field struct {
	name, about      string
	format           string       // of a result, as in JSON Schema
	kind             reflect.Kind // a key of jsonTypes
	entries          reflect.Type // the structs in a list; nil for a list of texts
	required         bool         // the key must be present; a text may still be empty
	path             bool         // a path in the guest, which [sandbox.resolvePaths] makes absolute
	nul              bool         // NUL bytes are allowed
	fallback         json.RawMessage
	enum             []string
	minimum, maximum int64 // bytes of a text, or of each text in a list; or bounds of a number
	maxItems         int64 // of a list
	maxTotal         int64 // bytes of all texts in a list, with a NUL for each
	pattern          *regexp.Regexp
}

// jsonTypes are the JSON types of arguments and results, each with the kinds of
// [jsontext.Token] that begin its values. A *bool is a bool whose default is nil.
var jsonTypes = map[reflect.Kind]struct{ name, kinds string }{
	reflect.String:  {"string", `"`},
	reflect.Bool:    {"boolean", "tf"},
	reflect.Pointer: {"boolean", "tf"},
	reflect.Int64:   {"integer", "0"},
	reflect.Slice:   {"array", "["},
}

var fieldTables sync.Map // reflect.Type to []field

// fieldsOf returns a description of each field of a struct. The rules of arguments are:
//
//	required   the key must be present
//	path       a path in the guest
//	nul        NUL bytes are allowed
//	default=X  the value of an omitted argument
//	enum=X|Y   the allowed values
//	min=N      minimum bytes of a text, or of each text in a list; or a number's minimum
//	max=N      likewise, the maximum
//	items=N    maximum number of texts in a list
//	total=N    maximum bytes of all texts in a list, with a NUL for each
//	pattern=X  a name in patterns
//
// Fields of results have no rules. They are required unless they have omitempty.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldTables.Load(t); ok {
		return known.([]field)
	}
	fields := make([]field, t.NumField())
	for i := range fields {
		fields[i] = newField(t.Field(i))
	}
	fieldTables.Store(t, fields)
	return fields
}

func newField(s reflect.StructField) (f field) {
	name, omitempty, _ := strings.Cut(s.Tag.Get("json"), ",")
	rules, isArgument := s.Tag.Lookup("rule")
	f.name, f.about, f.format, f.kind = name, s.Tag.Get("about"), s.Tag.Get("format"), s.Type.Kind()
	f.required = !isArgument && omitempty == ""
	if f.kind == reflect.Slice && s.Type.Elem().Kind() == reflect.Struct {
		f.entries = s.Type.Elem()
	}
	flags := map[string]*bool{"required": &f.required, "path": &f.path, "nul": &f.nul}
	numbers := map[string]*int64{"min": &f.minimum, "max": &f.maximum, "items": &f.maxItems, "total": &f.maxTotal}
	for rule := range strings.FieldsSeq(rules) {
		key, value, _ := strings.Cut(rule, "=")
		switch {
		case flags[key] != nil:
			*flags[key] = true
		case numbers[key] != nil:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				panic(err)
			}
			*numbers[key] = n
		case key == "default":
			if f.kind == reflect.String {
				value = strconv.Quote(value)
			}
			f.fallback = json.RawMessage(value)
		case key == "enum":
			f.enum = strings.Split(value, "|")
		case key == "pattern":
			f.pattern = patterns[value]()
		default:
			panic("sandboxtools: unknown rule " + key)
		}
	}
	return f
}

// normalize fills in omitted arguments and validates all of them. args points to the
// struct.
func normalize(args any) error {
	v := reflect.ValueOf(args).Elem()
	for i, f := range fieldsOf(v.Type()) {
		value := v.Field(i)
		if f.fallback != nil && value.IsZero() {
			_ = json.Unmarshal(f.fallback, value.Addr().Interface()) // it is from our own tags
		}
		if err := f.check(value); err != nil {
			return err
		}
	}
	return nil
}

// check validates a value. It does not check that a required argument is present.
func (f *field) check(v reflect.Value) error {
	switch f.kind {
	case reflect.String:
		return f.checkText(f.name, v.String())
	case reflect.Int64:
		if n := v.Int(); n < f.minimum || n > f.maximum {
			return refuse(InvalidArgument, f.name, "%d is not between %d and %d", n, f.minimum, f.maximum)
		}
	case reflect.Slice:
		if int64(v.Len()) > f.maxItems {
			return refuse(InvalidArgument, f.name, "more than %d entries", f.maxItems)
		}
		var total int64
		for i := range v.Len() {
			if err := f.checkText(f.place(i), v.Index(i).String()); err != nil {
				return err
			}
			total += int64(v.Index(i).Len()) + 1
		}
		if total > f.maxTotal {
			return refuse(InvalidArgument, f.name, "%d bytes in total, the limit is %d", total, f.maxTotal)
		}
	}
	return nil
}

func (f *field) place(i int) string { return f.name + "[" + strconv.Itoa(i) + "]" }

func (f *field) checkText(place, s string) error {
	size := int64(len(s))
	switch {
	case size == 0 && f.minimum > 0:
		return refuse(InvalidArgument, place, "empty")
	case size < f.minimum:
		return refuse(InvalidArgument, place, "%d bytes, the minimum is %d", size, f.minimum)
	case f.enum != nil && !slices.Contains(f.enum, s):
		return refuse(InvalidArgument, place, "%.40q is not one of %s", s, strings.Join(f.enum, ", "))
	case f.maximum > 0 && size > f.maximum:
		return refuse(InvalidArgument, place, "%d bytes, the limit is %d", size, f.maximum)
	case !f.nul && strings.ContainsRune(s, 0):
		return refuse(InvalidArgument, place, "contains a NUL byte")
	case f.pattern != nil && !f.pattern.MatchString(s):
		return refuse(InvalidArgument, place, "%.40q does not match %s", s, f.pattern)
	}
	return nil
}

// members are the members of a JSON object. encoding/json sorts them by name, so the text
// is deterministic.
type members map[string]any

// schemaText returns the JSON Schema of the arguments or the result of a tool. decode is
// stricter: it counts bytes instead of characters, and rejects duplicate keys.
func schemaText(t reflect.Type) json.RawMessage {
	s := objectSchema(t)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out, err := json.Marshal(s)
	if err != nil {
		panic(err) // it contains only maps, lists, strings, and defaults from our own tags
	}
	return out
}

func objectSchema(t reflect.Type) members {
	properties, required := members{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.name] = f.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	return members{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func (f *field) schema() members {
	s := members{"type": jsonTypes[f.kind].name, "description": f.about}
	s.set("format", f.format)
	s.set("default", f.fallback)
	text := s // what constraints of texts belong to
	switch {
	case f.kind == reflect.Int64:
		s.set("minimum", f.minimum)
		s.set("maximum", f.maximum)
		return s
	case f.entries != nil:
		s["items"] = objectSchema(f.entries)
		return s
	case f.kind == reflect.Slice:
		text = members{"type": "string"}
		s["items"] = text
		s.set("maxItems", f.maxItems)
	}
	text.set("enum", f.enum)
	text.set("minLength", f.minimum)
	text.set("maxLength", f.maximum)
	if f.pattern != nil { // ECMAScript has no (?s); its [^=] matches newlines
		text["pattern"] = strings.TrimPrefix(f.pattern.String(), "(?s)")
	}
	return s
}

// set sets a member, unless the value is zero.
func (m members) set(name string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		m[name] = value
	}
}
