package sharelink

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"gaol/runtime/snippets"
)

// The names in fragments.
const (
	sourceName = "src="
	filesName  = "files="
)

const (
	maxText  = 200_000 // bytes
	maxFiles = 10
)

// encoding rejects text whose last character has bits that are not part of a byte.
var encoding = base64.RawURLEncoding.Strict()

// Encode returns the fragment, without "#", of a link to a snippet: of in's source or files. For an
// input that has no link, the error is an [*snippets.InputError].
func Encode(in snippets.Input) (fragment string, err error) {
	name, text, err := textOf(in)
	if err != nil {
		return "", err
	}
	if len(text) > maxText {
		return "", &snippets.InputError{Code: snippets.InputTooLarge, Message: fmt.Sprintf("a link has at most %d bytes of source", maxText)}
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := w.Write(text); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return name + encoding.EncodeToString(packed.Bytes()), nil
}

// textOf returns what a fragment has of an input.
func textOf(in snippets.Input) (name string, text []byte, err error) {
	if (in.Source == "") == (len(in.Files) == 0) {
		return "", nil, invalid("want either source or files")
	}
	if in.Source != "" {
		if !utf8.ValidString(in.Source) {
			return "", nil, invalid("the source is not valid UTF-8")
		}
		return sourceName, []byte(in.Source), nil
	}
	if len(in.Files) > maxFiles {
		return "", nil, invalid("more than %d files", maxFiles)
	}
	for _, f := range in.Files {
		if !utf8.ValidString(f.Path) || !utf8.ValidString(f.Source) {
			return "", nil, invalid("%q is not valid UTF-8", f.Path)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(in.Files); err != nil {
		return "", nil, err
	}
	return filesName, bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func invalid(format string, args ...any) *snippets.InputError {
	return &snippets.InputError{Code: snippets.InputInvalid, Message: fmt.Sprintf(format, args...)}
}
