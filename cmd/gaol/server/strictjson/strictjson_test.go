package strictjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }
	for _, c := range []struct{ text, want string }{
		{`{"a":[1,2,{"b":null}]}`, ""},
		{`"x"`, ""},
		{` {} ` + "\n", ""},
		{`{"a":{"b":[` + list(maxMembers*3) + `]}}`, ""},
		{``, "EOF"},
		{`{`, "EOF"},
		{`{"a":1,"a":2}`, "duplicate"},
		{`{"a":1,"\u0061":2}`, "duplicate"},
		{`{"a":{"b":{"c":1,"c":2}}}`, "duplicate"},
		{"{\"a\":\"\xff\"}", "UTF-8"},
		{`{"a":"\ud800"}`, "surrogate"},
		{`{} {}`, "after"},
		{`{} x`, "after"},
		{`{"a":01}`, "byte 6"},
		{`{'a':1}`, "byte 1"},
		{`{"a":NaN}`, "byte 5"},
		{`{"a":1,}`, "byte 6"},
		{`{"args":[` + list(2*maxMembers+2) + `]}`, "members"},
		{`{"a":{"b":[` + list(maxValues+1) + `]}}`, "values"},
		{strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "levels"},
		{strings.Repeat("[", 1<<20), "levels"},
	} {
		err := Check([]byte(c.text))
		short := c.text[:min(len(c.text), 60)]
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", short, err, c.want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"name":"x","inner":{"a":1}}`, ""},
		{`{}`, ""},
		{`{"name":"x","name":"x"}`, "duplicate"},
		{`{"Name":"x"}`, "Name"},
		{`{"name":"x","other":1}`, "other"},
		{`{"inner":{"a":1,"a":1}}`, "duplicate"},
		{`{"name":1}`, "name"},
		{`[]`, "JSON ["},
		{`{} {}`, "byte 3"},
		{"{\"name\":\"\xff\"}", "UTF-8"},
		{`{`, "EOF"},
		{`{"inner":` + strings.Repeat("[", 20_000), "depth"},
	} {
		var v struct {
			Name  string          `json:"name"`
			Inner json.RawMessage `json:"inner"`
		}
		err := Decode([]byte(c.text), &v)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%.40s: %v, want %q", c.text, err, c.want)
		}
	}
}

// What passes, encoding/json parses, too, and huma's copy is not larger than the bounds allow.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2]}`, `{"a":1,"A":2}`, `[]`, `"\u0000"`, `{"a":1e999}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if Check(text) != nil {
			return
		}
		if err := Unmarshal(text, &v); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
