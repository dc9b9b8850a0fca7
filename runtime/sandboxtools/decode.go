package sandboxtools

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxCall is the maximum size of the JSON text of a call, in bytes. It has room for the
// largest content, with the escapes that text with newlines and quotes needs.
const maxCall = 64 << 20

// decode parses a JSON object into the arguments that args points to. It rejects what
// encoding/json accepts: unknown keys, duplicate keys, keys in another case, null, invalid
// UTF-8, unpaired surrogates, and data after the object. encoding/json would decode an
// unpaired surrogate to U+FFFD, and a file would get that content.
func decode(text json.RawMessage, args any) error {
	switch {
	case len(text) > maxCall:
		return refuse(InvalidArgument, "", "%d bytes of JSON, the limit is %d", len(text), maxCall)
	case len(text) == 0:
		text = json.RawMessage("{}")
	}
	v := reflect.ValueOf(args).Elem()
	in := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)) // they are found in seen
	d := decoder{Decoder: in, fields: fieldsOf(v.Type()), seen: map[string]bool{}}
	if err := d.object(v); err != nil {
		if _, ours := errors.AsType[*Error](err); ours {
			return err
		}
		return refuse(InvalidArgument, d.place, "malformed JSON: %w", err)
	}
	for _, f := range d.fields {
		if f.required && !d.seen[f.name] {
			return refuse(InvalidArgument, f.name, "missing")
		}
	}
	return nil
}

type decoder struct {
	*jsontext.Decoder
	fields []field
	seen   map[string]bool
	place  string // the argument that is being decoded
}

func (d *decoder) object(into reflect.Value) error {
	if first, err := d.ReadToken(); err != nil {
		return err
	} else if first.Kind() != '{' {
		return refuse(InvalidArgument, "", "the arguments are not a JSON object")
	}
	for d.PeekKind() != '}' {
		if err := d.member(into); err != nil {
			return err
		}
		d.place = ""
	}
	if _, err := d.ReadToken(); err != nil { // '}'
		return err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return refuse(InvalidArgument, "", "unexpected data after the arguments")
	}
	return nil
}

func (d *decoder) member(into reflect.Value) error {
	key, err := d.ReadToken()
	if err != nil {
		return err
	}
	name := key.String()
	i := slices.IndexFunc(d.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return refuse(InvalidArgument, "", "unknown argument %.40q", name)
	}
	if d.place = name; d.seen[name] {
		return refuse(InvalidArgument, name, "duplicate")
	}
	d.seen[name] = true
	f, v := &d.fields[i], into.Field(i)
	if err := d.value(f, v); err != nil {
		return err
	}
	return f.check(v)
}

// value decodes the value of an argument.
func (d *decoder) value(f *field, v reflect.Value) error {
	t, err := d.token(f.kind, f.name)
	if err != nil {
		return err
	}
	switch f.kind {
	case reflect.String:
		v.SetString(t.String())
	case reflect.Bool:
		v.SetBool(t.Bool())
	case reflect.Pointer:
		v.Set(reflect.ValueOf(new(t.Bool())))
	case reflect.Int64:
		n, ok := parseInteger(t.String())
		if !ok {
			return refuse(InvalidArgument, f.name, "not an integer between %d and %d", f.minimum, f.maximum)
		}
		v.SetInt(n)
	case reflect.Slice:
		return d.list(f, v)
	}
	return nil
}

// list decodes the rest of a list of texts.
func (d *decoder) list(f *field, v reflect.Value) error {
	list := []string{}
	for i := 0; d.PeekKind() != ']'; i++ {
		if int64(i) == f.maxItems {
			return refuse(InvalidArgument, f.name, "more than %d entries", f.maxItems)
		}
		t, err := d.token(reflect.String, f.place(i))
		if err != nil {
			return err
		}
		list = append(list, t.String())
	}
	v.Set(reflect.ValueOf(list))
	_, err := d.ReadToken() // ']'
	return err
}

// token reads the first token of a value of a type. The rest of a value of another type is
// not read, so that a large or deeply nested one takes no memory.
func (d *decoder) token(kind reflect.Kind, place string) (jsontext.Token, error) {
	t, err := d.ReadToken()
	if err == nil && !strings.ContainsRune(jsonTypes[kind].kinds, rune(t.Kind())) {
		err = refuse(InvalidArgument, place, "the type is not %s", jsonTypes[kind].name)
	}
	return t, err
}

// parseInteger parses a JSON number. As in JSON Schema, 30000.0 and 3e4 are integers. It
// does not use float64, which would round numbers that are not integers. It refuses numbers
// that big.Rat would need much time and memory for.
func parseInteger(raw string) (int64, bool) {
	const maxDigits, maxExponent = 100, len("-99")
	if _, exponent, _ := strings.Cut(strings.ToLower(raw), "e"); len(raw) > maxDigits || len(exponent) > maxExponent {
		return 0, false
	}
	n, ok := new(big.Rat).SetString(raw)
	if !ok || !n.IsInt() || !n.Num().IsInt64() {
		return 0, false
	}
	return n.Num().Int64(), true
}
