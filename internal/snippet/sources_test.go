package snippet

import (
	"fmt"
	"strings"
	"testing"
)

func addCell(t *testing.T, s *Sources, name, code string) {
	t.Helper()
	p, err := Cell(code, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Add(name, p, code)
}

func TestSourcesRelocate(t *testing.T) {
	s := NewSources("", "/usr/libexec/gaol")
	addCell(t, s, "cell-2.js", "const a = 1;\nthrow a;")
	addCell(t, s, "cell-4.js", "nosuch.member")
	for text, want := range map[string]string{
		"at cell-4.js:1:1":                       "at cell-4.js:1:1", // the position of gaol's await
		"at cell-4.js:1:15":                      "at cell-4.js:1:8",
		"at cell-2.js:2:1":                       "at cell-2.js:2:1",
		"at f (cell-2.js:2:1)":                   "at f (cell-2.js:2:1)",
		"cell-2.js:2:1\n at async cell-2.js:1:1": "cell-2.js:2:1\n at async cell-2.js:1:1",
		"at /workspace/cell-2.js:1:1":            "at /workspace/cell-2.js:1:1", // a file
		"at cell-2.js:99:1":                      "at cell-2.js",                // beyond the cell's end
		"at cell-3.js:1:1":                       "at cell-3.js",                // an unknown cell
		"at /workspace/mycell-2.js:1:1":          "at /workspace/mycell-2.js:1:1",
		"at main.js:1:1":                         "at main.js:1:1",
		"at cell-2.js:99999999999999999999:1":    "at cell-2.js:99999999999999999999:1",
		"cell-2.js":                              "cell-2.js",
		"":                                       "",
	} {
		if got := s.Relocate(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestSourcesStack(t *testing.T) {
	s := NewSources("", "/usr/libexec/gaol")
	addCell(t, s, "cell-1.js", "const a = 1;\nthrow a;")
	got := s.Stack("Error: m\n    at f (cell-1.js:2:1)\n    at node:vm:1:1\n    at x (node:fs:1:1)\n    at C.#evaluate (/usr/libexec/gaol/context.cjs:9:9)\n    at async cell-1.js:1:1")
	if want := "Error: m\n    at f (cell-1.js:2:1)\n    at async cell-1.js:1:1"; got != want {
		t.Errorf("%s", got)
	}
	if got := s.Frame("at nosuch (cell-7.js:1:1)\nat cell-1.js:2:1"); got == "" {
		t.Error("no frame")
	}
	if got := s.Frame("at nosuch (cell-7.js:1:1)"); got != "" {
		t.Errorf("an unknown cell: %s", got)
	}
}

// The stored code is bounded, and the latest cell is kept.
func TestSourcesForget(t *testing.T) {
	s := NewSources("", "/usr/libexec/gaol")
	code := "//" + strings.Repeat("x", 200<<10) + "\nthrow 1;"
	for i := range 50 {
		addCell(t, s, fmt.Sprintf("cell-%d.js", i), code)
	}
	if s.size > maxSources || len(s.list) != len(s.names) || len(s.list) < 2 {
		t.Errorf("%d bytes in %d", s.size, len(s.list))
	}
	if got := s.Relocate("cell-0.js:2:1 cell-49.js:2:1"); got != "cell-0.js cell-49.js:2:1" {
		t.Error(got)
	}
	p, err := Cell("1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		s.Add(fmt.Sprintf("cell-%d.js", 100+i), p, "1")
	}
	if len(s.list) > maxSources/512 {
		t.Errorf("%d cells are stored", len(s.list))
	}
}

// Frames of gaol, and Node's frames around them, are not in logs.
func TestSourcesLog(t *testing.T) {
	s := NewSources("", "/usr/libexec/gaol")
	addCell(t, s, "cell-1.js", "const a = 1;\nthrow a;")
	for text, want := range map[string]string{
		"Error: a\n    at f (cell-1.js:2:1)\n    at Script.run (node:vm:1:1)\n    at I.run (/usr/libexec/gaol/interrupt.cjs:1:1)\n    at process.x (node:internal:1:1)": "Error: a\n    at f (cell-1.js:2:1)",
		"Trace\n    at /usr/libexec/gaol/a.cjs:1:1 {\n  code: 1\n}\nmore":                                                                                               "Trace {\n  code: 1\n}\nmore",
		"Error: a\n    at g (node:fs:1:1)\n    at f (cell-1.js:2:1)\n    at node:x:1:1\n    at /usr/libexec/gaol/a.cjs:1:1":                                             "Error: a\n    at g (node:fs:1:1)\n    at f (cell-1.js:2:1)",
		"{ err: Error: a\n      at f (cell-1.js:2:1)\n      at run (/usr/libexec/gaol/a.cjs:1:1) }":                                                                     "{ err: Error: a\n      at f (cell-1.js:2:1) }",
		"the folder /usr/libexec/gaol":                     "the folder /usr/libexec/gaol",
		"    at g (node:fs:1:1)\n    at f (cell-1.js:2:1)": "    at g (node:fs:1:1)\n    at f (cell-1.js:2:1)",
		"    at /usr/libexec/gaol/a.cjs:1:1":               "",
	} {
		if got := s.Log(text); got != want {
			t.Errorf("%q became\n%q, want\n%q", text, got, want)
		}
	}
}
