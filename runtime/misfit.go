package runtime

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

// argumentError is what a guest gets for its nth argument, which does not fit: in JSON's
// words, without the host's names of types.
func argumentError(n int, err error) error {
	path, why := misfit(err)
	return &CallError{CodeArguments, fmt.Sprintf("argument %d%s: %s", n, path, why)}
}

// misfit is where in an argument something does not fit, and why.
func misfit(err error) (path, why string) {
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
	return schemaMisfit(strings.TrimPrefix(err.Error(), "json: "))
}

// wanted is what JSON calls the values that fit in a type.
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

// What the library says of a value that its schema refuses.
var (
	atSchema   = regexp.MustCompile(`^(?:validating root: )?(?:validating (\S+): )*`)
	wrongType  = regexp.MustCompile(`(?s)^type: .* has type "(\w+)", want (?:one of )?(.+)$`)
	missing    = regexp.MustCompile(`^required: missing properties: `)
	additional = regexp.MustCompile(`^unexpected additional properties `)
)

func schemaMisfit(text string) (path, why string) {
	at := atSchema.FindStringSubmatch(text)
	why = text[len(at[0]):]
	if m := wrongType.FindStringSubmatch(why); m != nil {
		why = "want " + strings.ReplaceAll(m[2], `"`, "") + ", got " + m[1]
	}
	why = missing.ReplaceAllString(why, "missing ")
	why = additional.ReplaceAllString(why, "unknown ")
	return schemaPath(at[1]), why
}

// schemaPath is the place in a value that a place in its schema is about.
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
