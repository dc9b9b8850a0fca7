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
	name, text, err := linkText(in)
	if err != nil {
		return "", err
	}
	if len(text) > MaxBytes {
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
	return name + base64.RawURLEncoding.EncodeToString(packed.Bytes()), err
}

// linkText returns the format and text of an input in a fragment.
func linkText(in Input) (name string, text []byte, err error) {
	if (in.Source == "") == (len(in.Files) == 0) {
		return "", nil, invalid("want either source or files")
	}
	if in.Source != "" {
		if !utf8.ValidString(in.Source) {
			return "", nil, invalid("the source is not valid UTF-8")
		}
		return "src=", []byte(in.Source), nil
	}
	if len(in.Files) > MaxFiles {
		return "", nil, invalid("more than %d files", MaxFiles)
	}
	text, err = jsonv2.Marshal(in.Files)
	if err != nil { // it is not UTF-8
		return "", nil, invalid("the files: %v", err)
	}
	return "files=", text, nil
}
