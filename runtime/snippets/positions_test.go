package snippets

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ten maps line n to line n+10, up to line 5.
var ten = program(func(line, column int) (string, int, int, bool) {
	return "src/a.ts", line + 10, column, line >= 1 && line <= 5
})

func TestLocate(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"main.mjs":                              "main.mjs",
		"at file:///workspace/src/main.mjs:1:2": "at src/a.ts:11:2",
		"at f (file:///workspace/src/main.mjs:5:9), /workspace/src/main.mjs:2:1": "at f (src/a.ts:15:9), src/a.ts:12:1",
		"file:///workspace/src/main.mjs:6:1":                                     "src/main.ts",
		"file:///workspace/src/main.mjs:99999999999:1":                           "src/main.ts:99999999999:1",
		"imported from /workspace/src/main.mjs":                                  "imported from src/main.ts",
		"/workspace/data.js":                                                     "/workspace/data.js",
		"x /usr/libexec/gaol/wire.cjs:1:2 /workspace/.adapter.mjs y":             "x gaol gaol y",
		"E\n    at f (file:///workspace/src/main.mjs:1:2)\n    at node:fs:1:2\n    at g (/usr/libexec/gaol/a.cjs:1:1)\n    at async h (file:///packages/x.js:1:1)\nend": "E\n    at f (src/a.ts:11:2)\nend",
		"    at the end\n    at last (node or not)": "    at the end\n    at last (node or not)",
	} {
		if got := ten.locate(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestFrames(t *testing.T) {
	stack := "Error: m\n    at a (file:///workspace/src/main.mjs:1:2)\n    at b (node:x:1:1)\n    at file:///workspace/src/main.mjs:6:1\nat file:///workspace/src/main.mjs:1:1\n    at file:///workspace/src/main.mjs:3:4\n"
	want := []string{"    at a (src/a.ts:11:2)", "    at src/a.ts:13:4"}
	got, at := ten.frames(stack, 10)
	if diff := cmp.Diff(want, got); diff != "" || at != (Problem{Path: "src/a.ts", Line: 11, Column: 2}) {
		t.Error(diff, at)
	}
	if got, _ := ten.frames(stack, 1); len(got) != 1 {
		t.Error(got)
	}
	if got, at := ten.frames("Error: m", 1); len(got) > 0 || at != (Problem{}) {
		t.Error("a place in a stack without one")
	}
}
