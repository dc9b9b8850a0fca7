package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a body of JSON. A parsed value can need twenty times as much memory as its text, and
// huma reports each invalid element, so that both must be bounded before it parses.
const (
	maxValues  = 1 << 20 // numbers, strings, objects, arrays, ..., and names, of a body
	maxMembers = 1 << 14 // of the body's object, and of each object and array directly in it
	maxDepth   = 64
)

// parsing bounds how many bodies above largeBody are parsed at once.
var parsing = make(chan struct{}, goruntime.NumCPU())

const largeBody = 64 << 10

// strictJSON is the format of requests: without duplicate names, invalid UTF-8, and text after the
// value, which readers interpret differently.
var strictJSON = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: unmarshal}

func unmarshal(text []byte, v any) error {
	if _, first := v.(*any); first { // huma parses a body twice, at first into any
		if err := checkJSON(text); err != nil {
			return err
		}
		if len(text) > largeBody {
			parsing <- struct{}{}
			defer func() { <-parsing }()
		}
	}
	return json.Unmarshal(text, v)
}

// checkJSON returns an error for text that is not one JSON value within the bounds.
func checkJSON(text []byte) error {
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
