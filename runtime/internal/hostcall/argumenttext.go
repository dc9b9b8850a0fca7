package hostcall

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// ArgumentText returns the text of the error for the nth argument, from 1, in JSON's terms
// instead of Go's type names.
func ArgumentText(n int, err error) string {
	path, why := mismatch(err)
	return fmt.Sprintf("argument %d%s: %s", n, path, why)
}

// mismatch returns the place in an argument that does not have the expected type, and why.
func mismatch(err error) (path, why string) {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field != "" {
			path = "." + e.Field
		}
		return path, "want " + wanted(e.Type) + ", got " + e.Value
	}
	if e, ok := errors.AsType[*time.ParseError](err); ok {
		return "", fmt.Sprintf("want a time such as 2006-01-02T15:04:05Z, got %q", e.Value)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return "", "want a string of base64"
	}
	return schemaMismatch(strings.TrimPrefix(err.Error(), "json: "))
}

// wanted returns JSON's name for the values of a type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return fmt.Sprintf("integer from %d to %d", -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1)
	case reflect.Uint, reflect.Uint64:
		return "integer, not negative"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("integer from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Array, reflect.Slice:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return "string of base64"
		}
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "string"
}

// The library's error texts for a value that does not match its schema.
var (
	atSchema   = regexp.MustCompile(`^(?:validating root: )?(?:validating (\S+): )*`)
	wrongType  = regexp.MustCompile(`(?s)^type: .* has type "(\w+)", want (?:one of )?(.+)$`)
	missing    = regexp.MustCompile(`^required: missing properties: `)
	additional = regexp.MustCompile(`^unexpected additional properties `)
)

func schemaMismatch(text string) (path, why string) {
	at := atSchema.FindStringSubmatch(text)
	why = text[len(at[0]):]
	if m := wrongType.FindStringSubmatch(why); m != nil {
		why = "want " + strings.ReplaceAll(m[2], `"`, "") + ", got " + m[1]
	}
	why = missing.ReplaceAllString(why, "missing ")
	why = additional.ReplaceAllString(why, "unknown ")
	return schemaPath(at[1]), why
}

// schemaPath turns a JSON pointer into a schema into a path in the value.
func schemaPath(pointer string) string {
	var path strings.Builder
	words := strings.Split(pointer, "/")[1:]
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == "properties" && i+1 < len(words):
			i++
			path.WriteString("." + strings.NewReplacer("~1", "/", "~0", "~").Replace(words[i]))
		case words[i] == "items":
			path.WriteString("[]")
		case words[i] == "additionalProperties":
			path.WriteString(".*")
		}
	}
	return path.String()
}
