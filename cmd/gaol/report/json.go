package report

import (
	"bytes"
	"encoding/json"
	"io"
)

// JSON writes v to standard output as one line. It encodes all of v first, so that
// a consumer sees an object or nothing.
func JSON(stdout io.Writer, v any) error {
	line, err := Line(v)
	if err != nil {
		return err
	}
	return Stdout(stdout, line)
}

// Line returns v as one line of JSON. It does not escape <, > and &, which are
// frequent in stack traces.
func Line(v any) (string, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return line.String(), err
}
