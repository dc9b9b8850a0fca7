package sandboxtools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxCall is what the JSON text of one call has at most, in bytes. The largest content,
// and as many escapes as text with newlines and quotes needs, fit in.
const maxCall = 64 << 20

// decode reads the JSON object text into the arguments that args points to. It refuses
// what encoding/json lets pass: unknown keys, keys twice or in another case, null, text
// that is no UTF-8, half of a surrogate pair, anything after the object. Nothing is
// made of more text than its field may have.
func decode(text json.RawMessage, args any) error {
	if len(text) > maxCall {
		return refuse(InvalidArgument, "", "%d bytes of JSON are more than %d", len(text), maxCall)
	}
	if !utf8.Valid(text) {
		return refuse(InvalidArgument, "", "the JSON is not UTF-8")
	}
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	v := reflect.ValueOf(args).Elem()
	o := object{dec: json.NewDecoder(bytes.NewReader(text)), fields: fieldsOf(v.Type()), seen: map[string]bool{}}
	if err := o.read(v); err != nil {
		return malformed("", err)
	}
	for _, f := range o.fields {
		if f.required && !o.seen[f.name] {
			return refuse(InvalidArgument, f.name, "it is missing")
		}
	}
	return nil
}

// malformed is an error of encoding/json, or one of ours as it is.
func malformed(place string, err error) error {
	if _, ours := errors.AsType[*Error](err); ours {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return refuse(InvalidArgument, place, "not the JSON that it has to be: %w", err)
}

// object reads the arguments.
type object struct {
	dec    *json.Decoder
	fields []field
	seen   map[string]bool
}

func (o *object) read(into reflect.Value) error {
	if first, err := o.dec.Token(); err != nil {
		return err
	} else if first != json.Delim('{') {
		return refuse(InvalidArgument, "", "the arguments are no JSON object")
	}
	for o.dec.More() {
		if err := o.member(into); err != nil {
			return err
		}
	}
	if _, err := o.dec.Token(); err != nil { // '}'
		return err
	}
	if _, err := o.dec.Token(); !errors.Is(err, io.EOF) {
		return refuse(InvalidArgument, "", "there is more after the arguments")
	}
	return nil
}

func (o *object) member(into reflect.Value) error {
	key, err := o.dec.Token()
	if err != nil {
		return err
	}
	name, _ := key.(string) // in an object, where a value isn't
	f := o.find(name)
	if f == nil {
		return refuse(InvalidArgument, "", "there is no argument %.40q", name)
	}
	if o.seen[name] {
		return refuse(InvalidArgument, name, "it is there twice")
	}
	o.seen[name] = true
	var raw json.RawMessage
	if err := o.dec.Decode(&raw); err != nil {
		return malformed(name, err)
	}
	v := into.Field(f.index)
	if err := f.parse(raw, v); err != nil {
		return err
	}
	return f.check(v)
}

func (o *object) find(name string) *field {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
}

// parse sets v to what raw, which is valid JSON, says.
func (f *field) parse(raw json.RawMessage, v reflect.Value) error {
	switch f.kind {
	case text:
		s, err := f.parseText(f.name, raw)
		v.SetString(s)
		return err
	case flag, choice:
		is, err := strconv.ParseBool(string(raw[:min(len(raw), 6)]))
		if err != nil || len(raw) < 4 { // 1 and t are none of JSON's
			return refuse(InvalidArgument, f.name, "it is neither true nor false")
		}
		if f.kind == choice {
			v.Set(reflect.ValueOf(&is))
			return nil
		}
		v.SetBool(is)
	case number:
		n, whole := wholeNumber(string(raw))
		if !whole {
			return refuse(InvalidArgument, f.name, "it is no whole number between %d and %d", f.least, f.most)
		}
		v.SetInt(n)
	case list:
		return f.parseList(raw, v)
	}
	return nil
}

// wholeNumber reads a number of JSON, of which 30000.0 and 3e4 are whole ones as well, as
// JSON Schema has it. It is not read as a float64, which would round what is not whole.
func wholeNumber(raw string) (n int64, whole bool) {
	digits, power, _ := strings.Cut(strings.ToLower(raw), "e")
	exponent, err := strconv.Atoi(cmp.Or(power, "0"))
	if err != nil {
		return 0, false
	}
	before, after, _ := strings.Cut(digits, ".")
	digits = strings.TrimRight(before+after, "0")
	if digits == "" || digits == "-" {
		return 0, true
	}
	const most = 18 // zeros that an int64 can end with
	zeros := exponent + len(before) - len(digits)
	if zeros < 0 || zeros > most {
		return 0, false
	}
	n, err = strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}

// longestEscape is \u0000, of what may be one byte.
const longestEscape = 6

func (f *field) parseText(place string, raw json.RawMessage) (string, error) {
	if raw[0] != '"' {
		return "", refuse(InvalidArgument, place, "it is no string")
	}
	if f.most > 0 && int64(len(raw)-2) > longestEscape*f.most {
		return "", refuse(InvalidArgument, place, "it has more than %d bytes", f.most)
	}
	if !wholePairs(raw) {
		return "", refuse(InvalidArgument, place, "it has half of a surrogate pair")
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

func (f *field) parseList(raw json.RawMessage, v reflect.Value) error {
	if raw[0] != '[' {
		return refuse(InvalidArgument, f.name, "it is no array")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	all := []string{}
	for i := 0; dec.More(); i++ {
		if i == f.items {
			return refuse(InvalidArgument, f.name, "more than %d entries", f.items)
		}
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return err
		}
		s, err := f.parseText(f.place(i), item)
		if err != nil {
			return err
		}
		all = append(all, s)
	}
	v.Set(reflect.ValueOf(all))
	return nil
}

// wholePairs reports whether the escapes of a valid JSON string make whole characters.
// Of half of one, encoding/json makes U+FFFD, and a file would have what nobody wrote.
func wholePairs(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // to what is escaped
		unit, ok := escaped(raw[i:])
		if !ok {
			continue
		}
		i += 4
		if !utf16.IsSurrogate(unit) {
			continue
		}
		if len(raw) < i+3 || raw[i+1] != '\\' {
			return false
		}
		low, ok := escaped(raw[i+2:])
		if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
			return false
		}
		i += 6
	}
	return true
}

// escaped reads u and four hexadecimal digits.
func escaped(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	return rune(unit), err == nil
}
