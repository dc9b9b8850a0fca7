package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// schema is the part of JSON Schema that the document uses.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"` // a name or a list of names
	Enum                 []any              `json:"enum"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	AdditionalProperties any                `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	ContentEncoding      string             `json:"contentEncoding"`
	Minimum              float64            `json:"minimum"`
}

// operation is an operation of the document.
type operation struct {
	method, path string

	ID         string `json:"operationId"`
	Parameters []struct {
		Name, In string
		Schema   *schema
	} `json:"parameters"`
	RequestBody struct {
		Content map[string]struct{ Schema *schema } `json:"content"`
	} `json:"requestBody"`
}

// hugeNumber exceeds a float64.
const hugeNumber = "1e400"

// generator makes random requests from a document.
type generator struct {
	*rand.Rand
	schemas    map[string]*schema
	operations []*operation
	ids        []string // of sandboxes
}

func newGenerator(t testing.TB, document []byte, seed uint64) *generator {
	t.Helper()
	var doc struct {
		Components struct{ Schemas map[string]*schema }
		Paths      map[string]map[string]*operation
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), schemas: doc.Components.Schemas}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			op.method, op.path = strings.ToUpper(method), path
			g.operations = append(g.operations, op)
		}
	}
	return g
}

// request makes a request of a random operation. One value in twenty is not as in its schema.
func (g *generator) request() (op *operation, path string, body []byte, kind string) {
	op = g.operations[g.IntN(len(g.operations))]
	path = op.path
	query := url.Values{}
	for _, p := range op.Parameters {
		value := g.value(p.Name, p.Schema, 0)
		text, ok := value.(string)
		if !ok {
			encoded, _ := json.Marshal(value)
			text = string(encoded)
		}
		switch p.In {
		case "path":
			if text == "" {
				text = "-"
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		case "query":
			if text != "" && g.IntN(2) == 0 { // an empty one counts as omitted
				query.Set(p.Name, text)
			}
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	for kind, content := range op.RequestBody.Content {
		if !strings.HasSuffix(kind, "json") {
			return op, path, []byte(g.text("")), kind
		}
		body, _ = json.Marshal(g.value("", content.Schema, 0))
		return op, path, body, kind
	}
	return op, path, nil, ""
}

// value returns a value for a field of a name.
func (g *generator) value(name string, s *schema, depth int) any {
	if s != nil && s.Ref != "" {
		s = g.schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	if s == nil || g.IntN(20) == 0 {
		return g.any(depth)
	}
	if len(s.Enum) > 0 {
		return s.Enum[g.IntN(len(s.Enum))]
	}
	kind, _ := s.Type.(string)
	if list, ok := s.Type.([]any); ok {
		kind, _ = list[g.IntN(len(list))].(string)
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.value(name, s.Items, depth+1))
		}
		return list
	case "string":
		if s.ContentEncoding == "base64" {
			return "aGVsbG8="
		}
		return g.text(name)
	case "integer", "number":
		return g.number(name)
	case "boolean":
		return g.IntN(2) == 0
	case "null":
		return nil
	}
	return g.any(depth)
}

func (g *generator) object(s *schema, depth int) any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) || g.IntN(4) == 0 {
			object[name] = g.value(name, s.Properties[name], depth+1)
		}
	}
	if of, ok := s.AdditionalProperties.(map[string]any); ok && depth < 4 {
		text, _ := json.Marshal(of)
		var element schema
		_ = json.Unmarshal(text, &element) // the document is valid
		for range g.IntN(2) {
			object[g.text("key")] = g.value("", &element, depth+1)
		}
	}
	if g.IntN(40) == 0 {
		object["unknown"] = g.any(depth)
	}
	return object
}

// texts are values of fields that only some values get past.
var texts = map[string][]string{
	"code":    {"1", "__return(1)", "console.log('a')", "throw new Error('x')", "(", "await new Promise((done) => setTimeout(done, 20))"},
	"command": {"true", "false", "node", "/nonexistent", "ls"},
	"path":    {"/workspace/a", "/workspace", "/", "../..", "/etc/passwd", "/proc/self", "a/b/c"},
	"key":     {"A", "/workspace/f", "b/c", "", "x"},
}

func (g *generator) text(name string) string {
	choices := append([]string{"", "a", "\x00", "ü\u2028", "../../etc", strings.Repeat("x", 300), "sha256:0"}, texts[name]...)
	if of := texts[name]; len(of) > 0 && g.IntN(4) != 0 {
		choices = of
	}
	if name == "id" && len(g.ids) > 0 && g.IntN(5) != 0 {
		choices = g.ids
	}
	return choices[g.IntN(len(choices))]
}

// number avoids long time limits, so that endless programs end soon.
func (g *generator) number(name string) any {
	if strings.HasSuffix(name, "Ms") {
		return []any{1, 50, 200, -1, 1 << 60}[g.IntN(5)]
	}
	return []any{0, 1, -1, 0.5, 1000, 1 << 40, 1e300, json.Number("12345678901234567890")}[g.IntN(8)]
}

// any returns a value of any type.
func (g *generator) any(depth int) any {
	values := []any{nil, true, -1, 1.5, "", "text", []any{}, map[string]any{}, json.Number(hugeNumber), strings.Repeat("long", 1000)}
	if depth < 3 && g.IntN(4) == 0 {
		return map[string]any{"a": g.any(depth + 1), "fs": []any{g.any(depth + 1)}}
	}
	return values[g.IntN(len(values))]
}

func (o *operation) String() string { return fmt.Sprintf("%s %s", o.method, o.path) }
