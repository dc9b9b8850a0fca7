package snippets

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// EncodeLink returns the fragment, without "#", of a link to a snippet: of in's source or files. If the
// input cannot be encoded, the error is an [*InputError].
//
// A fragment has one of two forms:
//
//	src=E      E is the source of src/main.ts
//	files=E    E is the JSON array [{"path": ..., "source": ...}, ...]
//
// E is the text in UTF-8, compressed with DEFLATE (RFC 1951), in unpadded base64url. The text has
// at most 200,000 bytes.
func EncodeLink(in Input) (fragment string, err error) {
	form, text := "src=", []byte(in.Source)
	if in.Source == "" {
		form = "files="
		text, err = jsonv2.Marshal(in.Files) // fails for text that is not UTF-8
	}
	switch {
	case (in.Source == "") == (len(in.Files) == 0):
		return "", invalid("want either source or files")
	case err != nil:
		return "", invalid("the files: %v", err)
	case !utf8.Valid(text):
		return "", invalid("the source is not valid UTF-8")
	case len(in.Files) > MaxFiles:
		return "", invalid("more than %d files", MaxFiles)
	case len(text) > MaxBytes:
		return "", &InputError{Code: InputTooLarge, Message: fmt.Sprintf("a link has at most %d bytes of source", MaxBytes)}
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	return form + base64.RawURLEncoding.EncodeToString(packed.Bytes()), err
}
