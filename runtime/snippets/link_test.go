package snippets

import (
	"compress/flate"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
)

// The format is fixed: links that people have shared must continue to work.
func TestLink(t *testing.T) {
	for name, c := range map[string]struct {
		in         Input
		form, text string
	}{
		"source":  {Input{Source: "export const x = 1\n"}, "src", "export const x = 1\n"},
		"unicode": {Input{Source: "// 𝒳 é \u2028 </script> & \x00"}, "src", "// 𝒳 é \u2028 </script> & \x00"},
		"longest": {Input{Source: strings.Repeat("ab", MaxBytes/2)}, "src", strings.Repeat("ab", MaxBytes/2)},
		"files": {
			Input{Files: []File{{Path: "src/main.ts", Source: "import './x.js'"}, {Path: "src/x.ts", Source: "<&>\u2028"}}}, "files",
			`[{"path":"src/main.ts","source":"import './x.js'"},{"path":"src/x.ts","source":"<&>` + "\u2028" + `"}]`,
		},
		"no lines": {Input{Files: []File{{Path: "src/main.ts"}}}, "files", `[{"path":"src/main.ts","source":""}]`},
	} {
		fragment, err := EncodeLink(c.in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		form, packed, _ := strings.Cut(fragment, "=")
		text, err := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.RawURLEncoding.Strict(), strings.NewReader(packed))))
		if err != nil || form != c.form || string(text) != c.text {
			t.Errorf("%s: %s, %v\n%s", name, form, err, text)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	file := File{Path: "src/main.ts", Source: "1"}
	for name, c := range map[string]struct {
		in   Input
		code string
	}{
		"nothing":    {Input{}, InputInvalid},
		"both":       {Input{Source: "1", Files: []File{file}}, InputInvalid},
		"bytes":      {Input{Source: "\xff"}, InputInvalid},
		"file bytes": {Input{Files: []File{{Path: "a", Source: "\xff"}}}, InputInvalid},
		"many files": {Input{Files: make([]File, MaxFiles+1)}, InputInvalid},
		"too large":  {Input{Source: strings.Repeat("a", MaxBytes+1)}, InputTooLarge},
		"large file": {Input{Files: []File{{Path: "a", Source: strings.Repeat("a", MaxBytes)}}}, InputTooLarge},
	} {
		_, err := EncodeLink(c.in)
		if e, ok := errors.AsType[*InputError](err); !ok || e.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}
