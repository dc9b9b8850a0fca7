package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a request. A parsed value can need twenty times as much memory as its text, and
// huma reports each invalid element, so that both must be bounded before it parses.
const (
	maxValues  = 1 << 20 // numbers, strings, objects, arrays, ..., and names, of a request
	maxMembers = 1 << 14 // of the request's object, and of each object and array directly in it
	maxDepth   = 64
)

// parsing bounds how many requests above largeText are parsed at once.
var parsing = make(chan struct{}, goruntime.NumCPU())

const largeText = 64 << 10

// Unmarshal parses a request that Check accepts. Several large ones take turns if v is an *any, the form
// that needs the most memory. Huma parses a text twice, at first into an any: the second
// time, it is not checked again.
func Unmarshal(text []byte, v any) error {
	if _, first := v.(*any); first {
		if err := Check(text); err != nil {
			return err
		}
		if len(text) > largeText {
			parsing <- struct{}{}
			defer func() { <-parsing }()
		}
	}
	return json.Unmarshal(text, v)
}

// Decode parses an object into a struct that has all of its fields, with their exact names. The bounds do
// not apply: fields of the type [json.RawMessage] need another check.
func Decode(text []byte, v any) error {
	err := jsonv2.Unmarshal(text, v, jsonv2.RejectUnknownMembers(true))
	if e, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		if e.Err != nil {
			return fmt.Errorf("%q: %w", e.JSONPointer, e.Err)
		}
		return fmt.Errorf("%q: a JSON %s is not allowed here", e.JSONPointer, e.JSONKind)
	}
	return errorOf(err)
}

// Check returns an error for text that is not one JSON value within the bounds.
func Check(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for values := 0; ; values++ {
		if values > maxValues {
			return fmt.Errorf("more than %d values", maxValues)
		}
		token, err := d.ReadToken()
		if err == io.EOF && values > 0 {
			return nil
		}
		if err != nil {
			return errorOf(err)
		}
		if d.StackDepth() > maxDepth {
			return fmt.Errorf("nested more than %d levels deep", maxDepth)
		}
		if depth := d.StackDepth(); depth == 0 {
			if _, err := d.ReadToken(); err != io.EOF {
				return errors.New("text after the value")
			}
			return nil
		} else if kind := token.Kind(); depth <= 2 && kind != '{' && kind != '[' {
			if _, members := d.StackIndex(depth); members > 2*maxMembers { // of an object, names count
				return fmt.Errorf("%s: more than %d members", d.StackPointer(), maxMembers)
			}
		}
	}
}

// errorOf returns a decoder's error without its package's name.
func errorOf(err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && e.Err != nil {
		return fmt.Errorf("at byte %d: %w", e.ByteOffset, e.Err)
	}
	return err
}
