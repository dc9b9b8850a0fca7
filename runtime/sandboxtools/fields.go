package sandboxtools

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// kind is what an argument is.
type kind int

const (
	text   kind = iota // string
	flag               // bool
	choice             // *bool, of which nil is the default
	number             // int64
	list               // []string
)

var kinds = map[reflect.Type]kind{
	reflect.TypeFor[string]():   text,
	reflect.TypeFor[bool]():     flag,
	reflect.TypeFor[*bool]():    choice,
	reflect.TypeFor[int64]():    number,
	reflect.TypeFor[[]string](): list,
}

// patterns are what rules call them. Texts that may be left out may be empty.
var patterns = map[string]*regexp.Regexp{
	"id":   regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]*)?$`),
	"name": regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9_.-]*)?$`),
	"root": regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$`),
	"env":  regexp.MustCompile(`(?s)^[^=]+=`),
}

// field is one argument of a tool.
type field struct {
	name, about string
	index       int // in the struct
	kind        kind
	required    bool // it has to be there; a text may still be empty
	nul         bool // it may have NUL bytes
	fallback    string
	enum        []string
	least, most int64 // bytes of a text, or of each of a list; or the number's bounds
	items       int   // of a list, at most
	pattern     *regexp.Regexp
}

var fieldTables sync.Map // reflect.Type to []field

// fieldsOf reads the table that a struct is. Rules are:
//
//	required   the key has to be there
//	nul        NUL bytes may be in it
//	default=X  what it is if it is left out
//	enum=X|Y   what it can be
//	min=N      bytes of a text, of each text in a list; or a number's bound
//	max=N      likewise
//	items=N    texts in a list, at most
//	pattern=X  one of patterns
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldTables.Load(t); ok {
		return known.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		fields = append(fields, newField(t.Field(i), i))
	}
	fieldTables.Store(t, fields)
	return fields
}

func newField(s reflect.StructField, index int) field {
	k, known := kinds[s.Type]
	if !known {
		panic("sandboxtools: no argument can be a " + s.Type.String())
	}
	f := field{name: s.Tag.Get("json"), about: s.Tag.Get("about"), index: index, kind: k}
	for rule := range strings.FieldsSeq(s.Tag.Get("rule")) {
		key, value, _ := strings.Cut(rule, "=")
		f.apply(key, value)
	}
	return f
}

func (f *field) apply(key, value string) {
	switch key {
	case "required":
		f.required = true
	case "nul":
		f.nul = true
	case "default":
		f.fallback = value
	case "enum":
		f.enum = strings.Split(value, "|")
	case "min":
		f.least = mustNumber(value)
	case "max":
		f.most = mustNumber(value)
	case "items":
		f.items = int(mustNumber(value))
	case "pattern":
		f.pattern = patterns[value]
	default:
		panic("sandboxtools: no rule " + key)
	}
}

func mustNumber(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err) // a tag of ours
	}
	return n
}

// settle fills in what was left out of the arguments that args points to, and checks
// them.
func settle(args any) error {
	v := reflect.ValueOf(args).Elem()
	for _, f := range fieldsOf(v.Type()) {
		f.fill(v.Field(f.index))
		if err := f.check(v.Field(f.index)); err != nil {
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
	case text:
		v.SetString(f.fallback)
	case choice:
		v.Set(reflect.ValueOf(new(f.fallback == "true")))
	case number:
		v.SetInt(mustNumber(f.fallback))
	}
}

// check does not ask whether the argument is there.
func (f *field) check(v reflect.Value) error {
	switch f.kind {
	case text:
		return f.checkText(f.name, v.String())
	case number:
		if n := v.Int(); n < f.least || n > f.most {
			return refuse(InvalidArgument, f.name, "%d is not between %d and %d", n, f.least, f.most)
		}
	case list:
		if v.Len() > f.items {
			return refuse(InvalidArgument, f.name, "more than %d entries", f.items)
		}
		for i := range v.Len() {
			if err := f.checkText(f.place(i), v.Index(i).String()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *field) place(i int) string { return f.name + "[" + strconv.Itoa(i) + "]" }

func (f *field) checkText(place, s string) error {
	size := int64(len(s))
	switch {
	case size == 0 && f.least > 0:
		return refuse(InvalidArgument, place, "it is empty")
	case size < f.least:
		return refuse(InvalidArgument, place, "%d bytes are less than %d", size, f.least)
	case f.enum != nil && !slices.Contains(f.enum, s):
		return refuse(InvalidArgument, place, "%.40q is none of %s", s, strings.Join(f.enum, ", "))
	case f.most > 0 && size > f.most:
		return refuse(InvalidArgument, place, "%d bytes are more than %d", size, f.most)
	case !f.nul && strings.ContainsRune(s, 0):
		return refuse(InvalidArgument, place, "it has a NUL")
	case f.pattern != nil && !f.pattern.MatchString(s):
		return refuse(InvalidArgument, place, "%.40q does not match %s", s, f.pattern)
	}
	return nil
}
