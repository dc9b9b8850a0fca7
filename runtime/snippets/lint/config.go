package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxConfig is the maximum size of rules as JSON.
const maxConfig = 1 << 20

// config is the JSON form of rules: those of Extends, with the fields of Rules added, and
// those of Allow removed.
type config struct {
	Extends string `json:"extends"` // "directive", or "" for none
	Rules
	Allow allowed `json:"allow"`
}

// allowed are rules that do not apply.
type allowed struct {
	Names      []string `json:"names"`
	Properties []string `json:"properties"`
	Constructs []string `json:"constructs"`
}

// Parse parses rules in JSON: the fields of [Rules], and extends and allow:
//
//	{
//	  "extends": "directive",
//	  "imports": ["zustand"],
//	  "names": {"alert": "snippets have no window"},
//	  "allow": {"names": ["setTimeout"], "properties": ["constructor"], "constructs": ["import-meta"]}
//	}
func Parse(data []byte) (Rules, error) {
	if len(data) > maxConfig {
		return Rules{}, fmt.Errorf("lint rules: more than %d bytes", maxConfig)
	}
	var c config
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("text after the object")
	}
	if err == nil && bytes.Equal(bytes.TrimSpace(data), []byte("null")) { // which would deny nothing
		err = errors.New("want an object")
	}
	if err != nil {
		return Rules{}, fmt.Errorf("lint rules: %w", err)
	}
	r, err := c.rules()
	if err != nil {
		return Rules{}, fmt.Errorf("lint rules: %w", err)
	}
	return r, nil
}

func (c config) rules() (Rules, error) {
	r := Rules{DeniedImports: map[string]string{}, Names: map[string]string{}, Properties: map[string]string{}}
	switch c.Extends {
	case "":
	case "directive":
		r = Directive()
	default:
		return Rules{}, fmt.Errorf("extends: unknown rules %q", c.Extends)
	}
	for _, name := range slices.Concat(c.Constructs, c.Allow.Constructs) {
		if !slices.Contains(constructs, name) {
			return Rules{}, fmt.Errorf("constructs: unknown rule %q", name)
		}
	}
	r.Imports = slices.Concat(r.Imports, c.Imports)
	for _, name := range c.Imports {
		delete(r.DeniedImports, name)
	}
	maps.Copy(r.DeniedImports, c.DeniedImports)
	maps.Copy(r.Names, c.Names)
	maps.Copy(r.Properties, c.Properties)
	r.Constructs = slices.Concat(r.Constructs, c.Constructs)
	c.Allow.remove(&r)
	return r, nil
}

func (a allowed) remove(r *Rules) {
	for _, name := range a.Names {
		delete(r.Names, name)
	}
	for _, name := range a.Properties {
		delete(r.Properties, name)
	}
	r.Constructs = slices.DeleteFunc(r.Constructs, func(name string) bool { return slices.Contains(a.Constructs, name) })
}
