package strictjson

import (
	"bytes"
	"encoding/json"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestUnmarshal(t *testing.T) {
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat("1,", n), ",") }
	for _, c := range []struct{ text, want string }{
		{`{"a":[1,2,{"b":null}]}`, ""},
		{`"x"`, ""},
		{` {} ` + "\n", ""},
		{`{"a":{"b":[` + list(maxTree/2) + `]}}`, ""},
		{`{"a":[` + list(2*maxMembers) + `]}`, ""},
		{`{"a":[` + list(2*maxMembers+1) + `]}`, "members"},
		{`{"globals":[` + list(2*maxMembers+1) + `]}`, ""},
		{`{"a`, "EOF"},
		{`{"a\`, "EOF"},
		{`{"globals":{"b":[` + list(maxTree+1) + `]}}`, ""},
		{`{"a":{"b":[` + list(maxTree+1) + `]}}`, "outside of globals"},
		{`{"a":1e999}`, "a: the number is out of range"},
		{`{"globals":{"a":{"b":1,"b":2}}}`, "duplicate"},
		{``, "EOF"},
		{`{`, "EOF"},
		{`{"a":1,"a":2}`, "duplicate"},
		{`{"a":1,"\u0061":2}`, "duplicate"},
		{`{"a":{"b":{"c":1,"c":2}}}`, "duplicate"},
		{"{\"a\":\"\xff\"}", "UTF-8"},
		{`{"a":"\ud800"}`, "surrogate"},
		{`{} {}`, "after"},
		{`{} x`, "after"},
		{`{"a":01}`, "column 7"},
		{`{'a':1}`, "column 2"},
		{`{"a":NaN}`, "column 6"},
		{`{"a":1,}`, "column 7"},
		{`{"globals":{"b":[` + list(maxValues+1) + `]}}`, "values"},
		{strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "levels"},
		{strings.Repeat("[", 1<<20), "levels"},
	} {
		var tree any
		err := Unmarshal([]byte(c.text), &tree)
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
		{`[]`, "want an object"},
		{`{"name":1}`, "name: want a string"},
		{`{} {}`, "column 4"},
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

// TestTree: opaque members keep their kind only, and all others are as encoding/json has them.
func TestTree(t *testing.T) {
	var tree, want any
	text := `{"code":"\u00e9","n":[1,-2.5e3,true,null,{"x":{}}],"globals":{"a":[1,{"b":2}]},"permissions":null,"functions":[{"schema":[1]}]}`
	plain := `{"code":"é","n":[1,-2500,true,null,{"x":{}}],"globals":{},"permissions":null,"functions":[{"schema":[]}]}`
	if err := Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(plain), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Error(diff)
	}
}

// TestMemory: the server's allocations for a hostile text are bounded by its size, whatever it consists of, and text
// with too many values is refused before most of it is read.
func TestMemory(t *testing.T) {
	for name, c := range map[string]struct {
		begin, each, end string
		most             uint64 // bytes
	}{
		"objects":              {`{"a":[`, `{},`, `0]}`, 16 << 20},
		"arrays":               {`{"a":[`, `[],`, `0]}`, 16 << 20},
		"numbers":              {`{"a":[`, `1,`, `0]}`, 16 << 20},
		"objects in an opaque": {`{"globals":{"a":[`, `{},`, `0]}}`, 1 << 20},
	} {
		text := []byte(c.begin + strings.Repeat(c.each, (15<<20)/len(c.each)) + c.end)
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		var tree any
		err := Unmarshal(text, &tree)
		goruntime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v", name, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > c.most {
			t.Errorf("%s: %d KiB were allocated, want at most %d", name, got>>10, c.most>>10)
		}
	}
	globals := []byte(`{"globals":{"a":[` + strings.Repeat(`{},`, 500_000) + `0]}}`)
	if n := testing.AllocsPerRun(1, func() {
		var tree any
		if err := Unmarshal(globals, &tree); err != nil {
			t.Error(err)
		}
	}); n > 100 {
		t.Errorf("a text with 500,000 values of globals takes %v allocations", n)
	}
}

// TestTyped: numbers with the value of an integer are integers, and errors name the field and the types as JSON does.
func TestTyped(t *testing.T) {
	type inner struct {
		Memory int64 `json:"memoryBytes"`
	}
	var v struct {
		Timeout int64           `json:"timeoutMs"`
		Limits  inner           `json:"limits"`
		Names   []string        `json:"names"`
		Raw     json.RawMessage `json:"raw"`
	}
	text := `{"timeoutMs":1000.0,"limits":{"memoryBytes":-1E3},"raw":[1.5,-0.0,"1e3"],"names":["1.0"]}`
	if err := Unmarshal([]byte(text), &v); err != nil || v.Timeout != 1000 || v.Limits.Memory != -1000 || string(v.Raw) != `[1.5,-0.0,"1e3"]` || v.Names[0] != "1.0" {
		t.Errorf("%v: %+v", err, v)
	}
	for text, want := range map[string]string{
		`{"limits":{"memoryBytes":"1"}}`: "limits.memoryBytes: want a whole number",
		`{"timeoutMs":1.5}`:              "timeoutMs: want a whole number",
		`{"timeoutMs":1e300}`:            "timeoutMs: want a whole number",
		`{"limits":[]}`:                  "limits: want an object",
		`{"names":true}`:                 "names: want an array",
	} {
		if err := Unmarshal([]byte(text), &v); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// countIn counts the values of the next value, as [Count] does for names without escapes.
func countIn(d *jsontext.Decoder, values, kept *int) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	*values++
	*kept++
	end := map[jsontext.Kind]jsontext.Kind{'{': '}', '[': ']'}[token.Kind()]
	for end != 0 && d.PeekKind() != end {
		if end == ']' {
			if err := countIn(d, values, kept); err != nil {
				return err
			}
			continue
		}
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		*values++
		*kept++
		in := kept
		if kind := d.PeekKind(); (kind == '{' || kind == '[') && opaque[name] {
			in = new(int)
		}
		if err := countIn(d, values, in); err != nil {
			return err
		}
	}
	if end != 0 {
		_, err = d.ReadToken()
	}
	return err
}

// wantCounted fails the test if [Count] counts other values of a valid text than its parser reads.
func wantCounted(t *testing.T, text []byte) {
	t.Helper()
	var values, kept int
	if !jsontext.Value(text).IsValid() || countIn(jsontext.NewDecoder(bytes.NewReader(text)), &values, &kept) != nil {
		return
	}
	escapes := bytes.Contains(text, []byte(`\`)) // Count does not know escaped names
	got, err := Count(text)
	_, exceeds := count(text, values, max(kept, got))
	_, exact := count(text, values-1, max(kept, got))
	if err == nil && (got < kept || got > kept && !escapes || exceeds != nil || exact == nil) {
		t.Errorf("%.100q: counted %d, parsed %d of %d", text, got, kept, values)
	} else if err != nil && kept <= maxTree && values <= maxValues && !escapes && !strings.Contains(err.Error(), "levels") {
		t.Errorf("%.100q: %v", text, err)
	}
}

func TestCount(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `1`, `"x"`, `{"a":[1, 2.5e3 ,-1,true,null,"a,b:[{"],"b":{"c":[]}}`, `{"globals":{"a":[1,{"b":2}],"globals":1},"c":1}`,
		`{"globals":1,"permissions":"x","arguments":[[]],"schema":{},"x":[1]}`, `{"a":{"globals":[1,2,[3]]},"b":"globals","c":[1]}`,
		`{"x\"globals":[1,2]}`, `{"\u0067lobals":[1,2]}`, `["globals",[1,2]]`, "\n{ \"globals\" : [ 1 ] , \"d\" : \"\\\\\" }\n",
	} {
		wantCounted(t, []byte(text))
	}
	if _, err := Count([]byte(strings.Repeat("{},", maxTree/2) + strings.Repeat("[1],", maxTree))); err == nil {
		t.Error("too many values")
	}
}

// What passes, encoding/json parses, too.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2]}`, `{"a":1,"A":2}`, `[]`, `"\u0000"`, `{"globals":1e999}`, `{"schema":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v any
		if Unmarshal(text, &v) == nil && !json.Valid(text) {
			t.Errorf("%q", text)
		}
		wantCounted(t, text)
	})
}

// TestLenient: options allow what guests can send.
func TestLenient(t *testing.T) {
	text := []byte(`["\ud800"]`)
	if err := Check(text, 10); err == nil {
		t.Error("half of a surrogate pair passed")
	}
	if err := Check(text, 10, jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Error(err)
	}
}
