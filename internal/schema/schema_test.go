package schema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type embedded struct {
	Secret string `json:"secret,omitempty"`
}

// Part is a part of a request.
type Part struct {
	Name string `json:"name" maxLength:"3" doc:"Its name."`
	Next *Part  `json:"next,omitempty" doc:"The next one."`
}

type request struct {
	Part
	embedded
	Count int64             `json:"count,omitempty" minimum:"1" doc:"How many."`
	Kind  string            `json:"kind,omitempty" enum:"a,b"`
	List  []string          `json:"list,omitempty" maxItems:"2" maxLength:"1"`
	Parts map[string]Part   `json:"parts,omitempty"`
	Any   json.RawMessage   `json:"globals,omitempty"`
	Texts map[string]string `json:"texts,omitempty"`
}

func TestDecode(t *testing.T) {
	in := NewSet().Input(reflect.TypeFor[request](), "request")
	got, err := in.Decode([]byte(`{"name": "x", "count": 2e0, "kind": "b", "list": ["y"], "globals": {"deep": [1]}}`), map[string]any{"texts": map[string]any{"k": "v"}})
	want := &request{Part: Part{Name: "x"}, Count: 2, Kind: "b", List: []string{"y"}, Any: json.RawMessage(`{"deep": [1]}`), Texts: map[string]string{"k": "v"}}
	if diff := cmp.Diff(any(want), got, cmp.AllowUnexported(request{})); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestDecodeInvalid(t *testing.T) {
	in := NewSet().Input(reflect.TypeFor[request](), "request")
	for text, want := range map[string]struct {
		location string
		syntax   bool
	}{
		`{}`:                                     {"", false},
		``:                                       {"", false},
		`[]`:                                     {"", false},
		`{"name": "long"}`:                       {"name", false},
		`{"name": "x", "count": 0}`:              {"count", false},
		`{"name": "x", "count": 1.5}`:            {"count", false},
		`{"name": "x", "kind": "c"}`:             {"kind", false},
		`{"name": "x", "list": ["ab"]}`:          {"list[0]", false},
		`{"name": "x", "list": ["a", "b", "c"]}`: {"list", false},
		`{"name": "x", "parts": {"p": {"name": 1}}}`:   {"parts.p.name", false},
		`{"name": "x", "next": {"name": "y", "n": 1}}`: {"next.n", false},
		`{"name": "x", "Count": 1}`:                    {"Count", false},
		`{"name": "x", "more": 1}`:                     {"more", false},
		`{"name": "x", "name": "y"}`:                   {"", true},
		`{"name": "x"`:                                 {"", true},
		`{"name": "x"} 1`:                              {"", true},
		"{\"name\": \"\xff\"}":                         {"", true},
	} {
		_, err := in.Decode([]byte(text), nil)
		e, ok := err.(*InvalidError)
		if !ok || e.Syntax != want.syntax || e.Details[0].Location != want.location {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := in.Decode([]byte(`{"name": "x"}`), map[string]any{"name": "y"})
	if e, ok := err.(*InvalidError); !ok || e.Details[0].Location != "name" {
		t.Errorf("a field in two places: %v", err)
	}
	_, err = in.Decode([]byte(`{"name": "`+strings.Repeat("x", 1<<20)+`"}`), nil)
	if text := err.Error(); len(text) > 1000 {
		t.Errorf("the error has %d bytes", len(text))
	}
}

// TestFields: an input has some fields of its type only.
func TestFields(t *testing.T) {
	in := NewSet().Input(reflect.TypeFor[request](), "request", "count", "kind")
	if _, err := in.Decode([]byte(`{"count": 1}`), nil); err != nil {
		t.Error(err)
	}
	for _, text := range []string{`{"name": "x"}`, `{"list": []}`} {
		if _, err := in.Decode([]byte(text), nil); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if view := in.View(); len(view.Properties) != 2 || len(view.Required) != 0 {
		t.Errorf("%+v", view)
	}
}

// TestView: views omit references, also of recursive types, and changing it changes no input.
func TestView(t *testing.T) {
	set := NewSet()
	in := set.Input(reflect.TypeFor[request](), "request")
	view := in.View()
	text, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"$ref", "null", "int64", "secret"} {
		if strings.Contains(string(text), word) {
			t.Errorf("%s in %s", word, text)
		}
	}
	next := view.Properties["next"]
	if next.Description != "The next one." || next.Properties["name"].Description != "Its name." || next.Properties["next"].Type != "object" || next.Properties["next"].Properties != nil {
		t.Errorf("%s", text)
	}
	delete(view.Properties, "count")
	view.Properties["kind"].Enum = nil
	if _, err := in.Decode([]byte(`{"name": "x", "count": 1}`), nil); err != nil {
		t.Error(err)
	}
	if _, err := in.Decode([]byte(`{"name": "x", "kind": "c"}`), nil); err == nil {
		t.Error("the input has changed")
	}
	if out := set.View(reflect.TypeFor[Part]()); len(out.Properties) != 2 || out.Required[0] != "name" {
		t.Errorf("%+v", out)
	}
}
