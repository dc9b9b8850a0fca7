package sandboxtools

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// patterns are the patterns that rules name. They accept an empty text, for arguments that
// can be omitted.
var patterns = map[string]*regexp.Regexp{
	"name": regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]*)?$`),
	"root": regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$`),
	"env":  regexp.MustCompile(`(?s)^[^=]+=`),
}

// field describes an argument of a tool.
type field struct {
	name, about      string
	kind             reflect.Kind // a key of jsonTypes
	required         bool         // the key must be present; a text may still be empty
	path             bool         // a path in the guest, which [sandbox.resolvePaths] makes absolute
	nul              bool         // NUL bytes are allowed
	fallback         string
	enum             []string
	minimum, maximum int64 // bytes of a text, or of each text in a list; or bounds of a number
	maxItems         int64 // of a list
	maxTotal         int64 // bytes of all texts in a list, with a NUL for each
	pattern          *regexp.Regexp
}

var fieldTables sync.Map // reflect.Type to []field

// fieldsOf returns a description of each field of a struct. The rules are:
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
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldTables.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		fields = append(fields, newField(t.Field(i)))
	}
	fieldTables.Store(t, fields)
	return fields
}

func newField(s reflect.StructField) (f field) {
	f.name, f.about, f.kind = s.Tag.Get("json"), s.Tag.Get("about"), s.Type.Kind()
	flags := map[string]*bool{"required": &f.required, "path": &f.path, "nul": &f.nul}
	numbers := map[string]*int64{"min": &f.minimum, "max": &f.maximum, "items": &f.maxItems, "total": &f.maxTotal}
	for rule := range strings.FieldsSeq(s.Tag.Get("rule")) {
		key, value, _ := strings.Cut(rule, "=")
		switch {
		case flags[key] != nil:
			*flags[key] = true
		case numbers[key] != nil:
			*numbers[key] = mustInteger(value)
		case key == "default":
			f.fallback = value
		case key == "enum":
			f.enum = strings.Split(value, "|")
		case key == "pattern":
			f.pattern = patterns[value]
		default:
			panic("sandboxtools: unknown rule " + key)
		}
	}
	return f
}

func mustInteger(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err) // in one of our own tags
	}
	return n
}

// normalize fills in omitted arguments and validates all of them. args points to the
// struct.
func normalize(args any) error {
	v := reflect.ValueOf(args).Elem()
	for i, f := range fieldsOf(v.Type()) {
		f.fill(v.Field(i))
		if err := f.check(v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) fill(v reflect.Value) {
	if f.fallback == "" || !v.IsZero() {
		return
	}
	switch f.kind {
	case reflect.String:
		v.SetString(f.fallback)
	case reflect.Pointer:
		v.Set(reflect.ValueOf(new(f.fallback == "true")))
	case reflect.Int64:
		v.SetInt(mustInteger(f.fallback))
	}
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
