package snippets

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
)

// The names in fragments.
const (
	sourceName = "src="
	filesName  = "files="
)

// linkEncoding rejects text whose last character has bits that are not part of a byte.
var linkEncoding = base64.RawURLEncoding.Strict()

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
	return name + linkEncoding.EncodeToString(packed.Bytes()), err
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
		return sourceName, []byte(in.Source), nil
	}
	if len(in.Files) > MaxFiles {
		return "", nil, invalid("more than %d files", MaxFiles)
	}
	text, err = jsonv2.Marshal(in.Files)
	if err != nil { // it is not UTF-8
		return "", nil, invalid("the files: %v", err)
	}
	return filesName, text, nil
}

// maxEncoded bounds E in bytes. DEFLATE makes a text at most some bytes longer, base64 a third.
const maxEncoded = 300_000

// DecodeLink returns the source or the files of a fragment, with or without "#".
func DecodeLink(fragment string) (in Input, err error) {
	name, e, _ := strings.Cut(strings.TrimPrefix(fragment, "#"), "=")
	if name += "="; name != sourceName && name != filesName {
		return in, errors.New("share link: want #src= or #files=")
	}
	text, err := unpackLink(e)
	switch {
	case err != nil:
	case name == filesName:
		in.Files, err = unpackFiles(text)
	case len(text) == 0:
		err = errors.New("the source is empty")
	}
	if err != nil {
		return Input{}, fmt.Errorf("share link: %w", err)
	}
	if name == sourceName {
		in.Source = string(text)
	}
	return in, nil
}

// unpackLink decodes and decompresses E.
func unpackLink(e string) ([]byte, error) {
	if len(e) > maxEncoded {
		return nil, errors.New("too long")
	}
	if strings.ContainsAny(e, "\r\n") {
		return nil, errors.New("a newline in base64url") // which the decoder ignores
	}
	packed, err := linkEncoding.DecodeString(e)
	if err != nil {
		return nil, errors.New("invalid base64url")
	}
	in := bytes.NewReader(packed)
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(in), MaxBytes+1))
	switch {
	case err != nil:
		return nil, errors.New("invalid compressed data")
	case len(text) > MaxBytes:
		return nil, fmt.Errorf("more than %d bytes of text", MaxBytes)
	case in.Len() > 0:
		return nil, errors.New("data after the compressed text")
	case !utf8.Valid(text):
		return nil, errors.New("the text is not valid UTF-8")
	}
	return text, nil
}

func unpackFiles(text []byte) (files []File, err error) {
	var list []struct {
		Path   *string `json:"path"`
		Source *string `json:"source"`
	}
	if err := jsonv2.Unmarshal(text, &list, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, errors.New("the files are not an array of objects with path and source")
	}
	if len(list) == 0 || len(list) > MaxFiles {
		return nil, fmt.Errorf("%d files, want 1 to %d", len(list), MaxFiles)
	}
	for i, f := range list {
		if f.Path == nil || f.Source == nil {
			return nil, fmt.Errorf("file %d lacks path or source", i+1)
		}
		files = append(files, File{Path: *f.Path, Source: *f.Source})
	}
	return files, nil
}
