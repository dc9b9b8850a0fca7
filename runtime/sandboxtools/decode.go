package sandboxtools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxCall is the maximum size of the JSON text of a call, in bytes. It has room for the
// largest content, with the escapes that text with newlines and quotes needs.
const maxCall = 64 << 20

// decode parses a JSON object into the arguments that args points to. It rejects what
// encoding/json accepts: unknown keys, duplicate keys, keys in another case, null, invalid
// UTF-8, unpaired surrogates, and data after the object. It checks the size of the text of
// a field before it decodes the field.
func decode(text json.RawMessage, args any) error {
	switch {
	case len(text) > maxCall:
		return refuse(InvalidArgument, "", "%d bytes of JSON, the limit is %d", len(text), maxCall)
	case !utf8.Valid(text):
		return refuse(InvalidArgument, "", "the JSON is not valid UTF-8")
	case len(text) == 0:
		text = json.RawMessage("{}")
	}
	v := reflect.ValueOf(args).Elem()
	d := objectDecoder{json: json.NewDecoder(bytes.NewReader(text)), fields: fieldsOf(v.Type()), seen: map[string]bool{}}
	if err := d.decode(v); err != nil {
		return malformed("", err)
	}
	for _, f := range d.fields {
		if f.required && !d.seen[f.name] {
			return refuse(InvalidArgument, f.name, "missing")
		}
	}
	return nil
}

// malformed returns an *Error for an error of encoding/json, and an *Error unchanged.
func malformed(place string, err error) error {
	if _, ours := errors.AsType[*Error](err); ours {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return refuse(InvalidArgument, place, "malformed JSON: %w", err)
}

type objectDecoder struct {
	json   *json.Decoder
	fields []field
	seen   map[string]bool
}

func (d *objectDecoder) decode(into reflect.Value) error {
	if first, err := d.json.Token(); err != nil {
		return err
	} else if first != json.Delim('{') {
		return refuse(InvalidArgument, "", "the arguments are not a JSON object")
	}
	for d.json.More() {
		if err := d.decodeMember(into); err != nil {
			return err
		}
	}
	if _, err := d.json.Token(); err != nil { // '}'
		return err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return refuse(InvalidArgument, "", "unexpected data after the arguments")
	}
	return nil
}

func (d *objectDecoder) decodeMember(into reflect.Value) error {
	key, err := d.json.Token()
	if err != nil {
		return err
	}
	name, _ := key.(string) // json.Decoder rejects keys that are not strings
	i := slices.IndexFunc(d.fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return refuse(InvalidArgument, "", "unknown argument %.40q", name)
	}
	if d.seen[name] {
		return refuse(InvalidArgument, name, "duplicate")
	}
	d.seen[name] = true
	var raw json.RawMessage
	if err := d.json.Decode(&raw); err != nil {
		return malformed(name, err)
	}
	f, v := &d.fields[i], into.Field(i)
	if err := f.parse(raw, v); err != nil {
		return err
	}
	return f.check(v)
}

// parse sets v to the value of raw, which is valid JSON.
func (f *field) parse(raw json.RawMessage, v reflect.Value) error {
	switch f.kind {
	case reflect.String:
		s, err := f.parseText(f.name, raw)
		v.SetString(s)
		return err
	case reflect.Bool, reflect.Pointer:
		b, err := strconv.ParseBool(string(raw[:min(len(raw), 6)]))
		if err != nil || len(raw) < 4 { // ParseBool also accepts 1 and t
			return refuse(InvalidArgument, f.name, "neither true nor false")
		}
		if f.kind == reflect.Pointer {
			v.Set(reflect.ValueOf(&b))
		} else {
			v.SetBool(b)
		}
	case reflect.Int64:
		n, ok := parseInteger(string(raw))
		if !ok {
			return refuse(InvalidArgument, f.name, "not an integer between %d and %d", f.minimum, f.maximum)
		}
		v.SetInt(n)
	case reflect.Slice:
		return f.parseList(raw, v)
	}
	return nil
}

// parseInteger parses a JSON number. As in JSON Schema, 30000.0 and 3e4 are integers. It
// does not use float64, which would round numbers that are not integers.
func parseInteger(raw string) (n int64, ok bool) {
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
	const maxZeros = 18 // trailing zeros of an int64
	zeros := exponent + len(before) - len(digits)
	if zeros < 0 || zeros > maxZeros {
		return 0, false
	}
	n, err = strconv.ParseInt(digits+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}

const longestEscape = 6 // characters of \u0000, which may be one byte

func (f *field) parseText(place string, raw json.RawMessage) (s string, err error) {
	switch {
	case raw[0] != '"':
		return "", refuse(InvalidArgument, place, "not a string")
	case f.maximum > 0 && int64(len(raw)-2) > longestEscape*f.maximum:
		return "", refuse(InvalidArgument, place, "more than %d bytes", f.maximum)
	case !pairedSurrogates(raw):
		return "", refuse(InvalidArgument, place, "unpaired surrogate")
	}
	err = json.Unmarshal(raw, &s)
	return s, err
}

func (f *field) parseList(raw json.RawMessage, v reflect.Value) error {
	if raw[0] != '[' {
		return refuse(InvalidArgument, f.name, "not an array")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	list := []string{}
	for i := 0; dec.More(); i++ {
		if int64(i) == f.maxItems {
			return refuse(InvalidArgument, f.name, "more than %d entries", f.maxItems)
		}
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return err
		}
		s, err := f.parseText(f.place(i), item)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	v.Set(reflect.ValueOf(list))
	return nil
}

// pairedSurrogates reports whether a valid JSON string escapes no unpaired surrogate.
// encoding/json would silently decode one to U+FFFD, and a file would get that content.
func pairedSurrogates(raw []byte) bool {
	for i := bytes.IndexByte(raw, '\\'); i >= 0; i = bytes.IndexByte(raw, '\\') {
		unit := unicodeEscape(raw[i:])
		raw = raw[i+2:]
		if !utf16.IsSurrogate(unit) {
			continue
		}
		if utf16.DecodeRune(unit, unicodeEscape(raw[4:])) == utf8.RuneError {
			return false
		}
		raw = raw[10:] // the digits of the first escape, and the second escape
	}
	return true
}

// unicodeEscape returns the code unit of an escape \uXXXX at the start of b, or 0.
func unicodeEscape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(b[2:6]), 16, 16) // b is valid JSON
	return rune(unit)
}
