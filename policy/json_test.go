package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// canonical are policies as MarshalJSON writes them.
var canonical = []string{
	`{}`,
	`{"fs":"allow","network":"deny","childProcess":"allow","process":"deny","env":"allow"}`,
	`{"fs":{"default":"allow","rules":[{"mode":"deny","operations":["write","rm"],"paths":["/a/**","/b"]}]}}`,
	`{"fs":{"rules":[{"mode":"allow","paths":["/**/x?/*.js"]}]}}`,
	`{"network":{"default":"deny","rules":[{"mode":"allow","operations":["connect","fetch"],"patterns":["tcp://localhost:3000","udp://[::1]:*"]}]}}`,
	`{"network":{"rules":[{"mode":"deny","patterns":["dns://*.example.com","tcp://*:443","tcp://10.0.0.1:80"]}]}}`,
	`{"childProcess":{"rules":[{"mode":"allow","operations":["spawn"],"patterns":["/usr/bin/git"]}]}}`,
	`{"process":{"default":"allow","rules":[{"mode":"deny","operations":["signal"]}]}}`,
	`{"env":{"default":"allow","rules":[{"mode":"deny","patterns":["*_TOKEN","AWS_*","?"]}]}}`,
}

func TestRoundTrip(t *testing.T) {
	for _, text := range canonical {
		p, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := json.Marshal(p)
		if err != nil || string(again) != text {
			t.Errorf("%s became %s, %v", text, again, err)
		}
	}
	for _, preset := range Presets() {
		p := preset.Make("/workspace")
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again Permissions
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Errorf("%s: %s", preset.Name, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"/a",`, 257), ",")
	rules := strings.TrimSuffix(strings.Repeat(`{"mode":"deny"},`, 257), ",")
	half := `{"mode":"deny","paths":[` + strings.TrimSuffix(strings.Repeat(`"/a",`, 129), ",") + `]}`
	tests := []struct{ text, place, why string }{
		{``, "line 1, column 1", "unexpected EOF"},
		{`{} {}`, "line 1, column 4", "after top-level value"},
		{"{\n  \"fs\": \"é\", x\n}", "line 2, column 14", "invalid character 'x'"},
		{"{\n  \"fs\": ", "line 2, column 9", "unexpected EOF"},
		{`[]`, "", "want an object"},
		{`null`, "", "null is not allowed"},
		{`{"fs":"allow"}` + strings.Repeat(" ", MaxText), "", "more than 1048576 bytes"},
		{"{\"fs\":\"\xff\"}", "line 1, column 8", "invalid UTF-8"},
		{`{"files":"allow"}`, "files", "unknown field"},
		{`{"FS":"allow"}`, "FS", "unknown field"},
		{`{"fs":"allow","f\u0073":"deny"}`, "line 1, column 15", `duplicate object member name`},
		{`{"fs":null}`, "fs", "null is not"},
		{`{"fs":true}`, "fs", "not allow, deny or"},
		{`{"fs":["allow"]}`, "fs", "not allow, deny or"},
		{`{"fs":"Allow"}`, "fs", "not allow or deny"},
		{`{"fs":{"rules":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`, "", "levels"},
		{`{"fs":""}`, "fs", "not allow or deny"},
		{`{"fs":{}}`, "fs", "rules missing"},
		{`{"fs":{"default":"allow"}}`, "fs", "rules missing"},
		{`{"fs":{"default":null,"rules":[]}}`, "fs.default", "null is not"},
		{`{"fs":{"rules":[]}}`, "fs.rules", "empty list"},
		{`{"fs":{"rules":{}}}`, "fs.rules", "want an array"},
		{`{"fs":{"rules":[` + rules + `]}}`, "fs.rules", "more than 256"},
		{`{"fs":{"rules":[{"mode":"deny","paths":[` + many + `]}]}}`, "fs.rules[0]", "more than 256 paths"},
		{`{"fs":{"rules":[` + half + `,` + half + `]}}`, "fs.rules[1]", "more than 256"},
		{`{"fs":{"rules":[null]}}`, "fs.rules[0]", "null is not"},
		{`{"fs":{"rules":[{"paths":["/a"]}]}}`, "fs.rules[0]", "mode missing"},
		{`{"fs":{"rules":[{"mode":"ask","paths":["/a"]}]}}`, "fs.rules[0].mode", "not allow or deny"},
		{`{"fs":{"rules":[{"mode":"deny"}]}}`, "fs.rules[0].paths", "missing or empty"},
		{`{"fs":{"rules":[{"mode":"deny","paths":[]}]}}`, "fs.rules[0].paths", "missing or empty"},
		{`{"fs":{"rules":[{"mode":"deny","operations":null,"paths":["/a"]}]}}`, "fs.rules[0].operations", "null is not"},
		{`{"fs":{"rules":[{"mode":"deny","operations":[null],"paths":["/a"]}]}}`, "fs.rules[0].operations[0]", "null is not"},
		{`{"fs":{"rules":[{"mode":null,"paths":["/a"]}]}}`, "fs.rules[0].mode", "null is not"},
		{`{"fs":{"rules":null}}`, "fs.rules", "null is not"},
		{`{"fs":{"rules":[{"mode":"deny","paths":[1]}]}}`, "fs.rules[0].paths[0]", "want a string"},
		{`{"fs":{"rules":[{"mode":"deny","path":["/a"]}]}}`, "fs.rules[0].path", "unknown field"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/a"],"patterns":["/a"]}]}}`, "fs.rules[0].patterns", "has none"},
		{`{"fs":{"rules":[{"mode":"deny","operations":[],"paths":["/a"]}]}}`, "fs.rules[0].operations", "empty list"},
		{`{"fs":{"rules":[{"mode":"deny","operations":["spawn"],"paths":["/a"]}]}}`, "fs.rules[0].operations[0]", "not an operation of fs"},
		{`{"fs":{"rules":[{"mode":"deny","operations":["rm","rm"],"paths":["/a"]}]}}`, "fs.rules[0].operations[1]", "repeated"},
		{`{"fs":{"rules":[{"mode":"allow","paths":["/a"]},{"mode":"deny","paths":["a"]}]}}`, "fs.rules[1].paths[0]", "absolute"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/a/../b"]}]}}`, "fs.rules[0].paths[0]", "clean"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/a/"]}]}}`, "fs.rules[0].paths[0]", "clean"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/a**"]}]}}`, "fs.rules[0].paths[0]", "whole elements"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/\u0000"]}]}}`, "fs.rules[0].paths[0]", "plain text"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/\ud800"]}]}}`, "line 1, column 43", "surrogate"},
		{`{"fs":{"rules":[{"mode":"deny","paths":["/` + strings.Repeat("a", 4096) + `"]}]}}`, "fs.rules[0].paths[0]", "too long"},
		{`{"network":{"rules":[{"mode":"allow"}]}}`, "network.rules[0].patterns", "missing"},
		{`{"network":{"rules":[{"mode":"allow","patterns":["http://a:1"]}]}}`, "network.rules[0].patterns[0]", "tcp://"},
		{`{"network":{"rules":[{"mode":"allow","patterns":["tcp://localhost:0"]}]}}`, "network.rules[0].patterns[0]", "port"},
		{`{"network":{"rules":[{"mode":"allow","operations":["dns"],"patterns":["tcp://a:1"]}]}}`, "network.rules[0].patterns[0]", "none of the rule's operations"},
		{`{"network":{"rules":[{"mode":"allow","operations":["connect","dns"],"patterns":["tcp://a:1"]}]}}`, "network.rules[0].operations[1]", "none of the rule's patterns"},
		{`{"process":{"rules":[{"mode":"allow","patterns":["1"]}]}}`, "process.rules[0].patterns", "has none"},
		{`{"env":{"rules":[{"mode":"allow","patterns":["A=B"]}]}}`, "env.rules[0].patterns[0]", "variable"},
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.text))
		bad, ok := errors.AsType[*FormatError](err)
		if !ok || bad.Place != tt.place || !strings.Contains(bad.Why, tt.why) {
			t.Errorf("%.100s: got %v, want %s: %s", tt.text, err, tt.place, tt.why)
		}
	}
}

func TestCheckRefusesValuesOfGo(t *testing.T) {
	long := make([]string, maxEntries)
	for i := range long {
		long[i] = fmt.Sprintf("/%d%s", i, strings.Repeat("\u0001", 4000)) // six bytes each in JSON
	}
	tests := []struct {
		name string
		p    Permissions
	}{
		{"default", Permissions{FS: Scope{Default: "x"}}},
		{"no rules", Permissions{FS: Scope{Default: Allow, Rules: []Rule{}}}},
		{"no operations", Permissions{FS: Scope{Rules: []Rule{{Mode: Allow, Operations: []Operation{}, Paths: []string{"/a"}}}}}},
		{"patterns that are none", Permissions{Process: Scope{Rules: []Rule{{Mode: Allow, Patterns: []string{}}}}}},
		{"not text", Permissions{Env: Scope{Rules: []Rule{{Mode: Allow, Patterns: []string{"\xff"}}}}}},
		{"too long as JSON", Permissions{FS: Scope{Rules: []Rule{{Mode: Allow, Paths: long}}}}},
	}
	for _, tt := range tests {
		if _, ok := errors.AsType[*FormatError](tt.p.Check()); !ok {
			t.Errorf("%s: %v", tt.name, tt.p.Check())
		}
	}
	if _, err := json.Marshal(Scope{}); !errors.Is(err, errOmitted) {
		t.Errorf("an omitted scope: %v", err)
	}
}

func TestPartsAreReadStrictly(t *testing.T) {
	var s Scope
	if err := json.Unmarshal([]byte(`{"rules":[{"mode":"deny","x":1}]}`), &s); err == nil || !strings.Contains(err.Error(), "rules[0].x") {
		t.Error(err)
	}
	s = Scope{Default: Allow, Rules: []Rule{{Mode: Deny}}}
	if err := json.Unmarshal([]byte(`"deny"`), &s); err != nil || s.Default != Deny || s.Rules != nil {
		t.Error(s, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range canonical {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"fs":{"rules":[{"mode":"deny","paths":["/<&>\u2028"]}]}} `))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		first, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatal(diff)
		}
		if second, _ := json.Marshal(again); !bytes.Equal(first, second) {
			t.Fatalf("%s became %s", first, second)
		}
	})
}
