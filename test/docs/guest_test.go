package docs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
)

// Code for guests runs in a sandbox, each block in a separate process.
func TestGuestBlocks(t *testing.T) {
	rt, err := runtime.Create(t.Context(), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		if err := runtime.CloseIdle(); err != nil {
			t.Error(err)
		}
	})
	for _, b := range allBlocks(t, "js", "ts", "tsx") {
		if b.file != "" {
			continue // a console block runs it
		}
		e, err := rt.Evaluate(t.Context(), fmt.Sprintf("```%s\n%s```\n", b.lang, b.text), runtime.EvaluateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if e.Error != nil {
			t.Errorf("%v: %v\n%s", b, e.Error, e.Error.Frame)
		}
		if _, want, shown := strings.Cut(b.text, "// → "); shown && strings.TrimSpace(want) != string(e.Value) {
			t.Errorf("%v: the value is %s, want %s", b, e.Value, want)
		}
	}
}

func TestJSONBlocks(t *testing.T) {
	for _, b := range allBlocks(t, "json") {
		if !json.Valid([]byte(b.text)) {
			t.Errorf("%v: not valid JSON", b)
		}
	}
}
