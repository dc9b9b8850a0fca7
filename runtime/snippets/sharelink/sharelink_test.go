package sharelink

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime/snippets"
)

func TestRoundTrip(t *testing.T) {
	for name, in := range map[string]snippets.Input{
		"source":   {Source: "export const x = 1\n"},
		"unicode":  {Source: "// 𝒳 é \u2028 </script> & \x00"},
		"longest":  {Source: strings.Repeat("ab", maxText/2)},
		"files":    {Files: []snippets.File{{Path: "src/main.ts", Source: "import './x.js'"}, {Path: "src/x.ts", Source: "<&>\u2028"}}},
		"no lines": {Files: []snippets.File{{Path: "src/main.ts"}}},
	} {
		fragment, err := Encode(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.ContainsAny(fragment[strings.Index(fragment, "=")+1:], "+/=#% ") {
			t.Errorf("%s: %q needs escapes in a URL", name, fragment)
		}
		for _, prefix := range []string{"", "#"} {
			if out, err := Decode(prefix + fragment); err != nil || !cmp.Equal(in, out) {
				t.Errorf("%s: %v\n%s", name, err, cmp.Diff(in, out))
			}
		}
	}
}

// The format is fixed: links that people have shared must continue to work.
func TestFormat(t *testing.T) {
	if in, err := Decode("#src=" + pack("console.log(1)")); err != nil || in.Source != "console.log(1)" {
		t.Errorf("%q, %v", in.Source, err)
	}
	// As a browser makes it: CompressionStream("deflate-raw").
	if in, err := Decode("src=S87PK87PSdXLyU_XMNQEAA"); err != nil || in.Source != "console.log(1)" {
		t.Errorf("%q, %v", in.Source, err)
	}
	in, err := Decode("#files=" + pack(`[{"path":"src/main.ts","source":"1"}]`))
	if want := []snippets.File{{Path: "src/main.ts", Source: "1"}}; err != nil || !cmp.Equal(want, in.Files) {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	file := snippets.File{Path: "src/main.ts", Source: "1"}
	for name, c := range map[string]struct {
		in   snippets.Input
		code string
	}{
		"nothing":    {snippets.Input{}, snippets.InputInvalid},
		"both":       {snippets.Input{Source: "1", Files: []snippets.File{file}}, snippets.InputInvalid},
		"bytes":      {snippets.Input{Source: "\xff"}, snippets.InputInvalid},
		"file bytes": {snippets.Input{Files: []snippets.File{{Path: "a", Source: "\xff"}}}, snippets.InputInvalid},
		"many files": {snippets.Input{Files: make([]snippets.File, maxFiles+1)}, snippets.InputInvalid},
		"too large":  {snippets.Input{Source: strings.Repeat("a", maxText+1)}, snippets.InputTooLarge},
		"large file": {snippets.Input{Files: []snippets.File{{Path: "a", Source: strings.Repeat("a", maxText)}}}, snippets.InputTooLarge},
	} {
		_, err := Encode(c.in)
		if e, ok := errors.AsType[*snippets.InputError](err); !ok || e.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	stored := base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("\x00\x00\x00\xff\xff", maxEncoded/5)))
	for name, fragment := range map[string]string{
		"nothing":        "",
		"other name":     "source=" + pack("1"),
		"no data":        "src=",
		"empty source":   "src=" + pack(""),
		"bomb":           "src=" + pack(strings.Repeat("a", 100*maxText)),
		"one too many":   "src=" + pack(strings.Repeat("a", maxText+1)),
		"empty blocks":   "src=" + stored,
		"cut":            "src=" + pack("console.log(1)")[:8],
		"padding":        "src=" + pack("console.log(1)") + "==",
		"standard":       "src=++//",
		"newline":        "src=" + pack("1") + "\n",
		"more after":     "src=" + pack("1") + "AAAA",
		"zlib":           "src=" + base64.RawURLEncoding.EncodeToString([]byte("\x78\x9c\x33\x04\x00\x00\x32\x00\x32")),
		"bytes":          "src=" + pack("\xff"),
		"no array":       "files=" + pack(`{"path":"a","source":"b"}`),
		"no files":       "files=" + pack(`[]`),
		"null":           "files=" + pack(`null`),
		"many files":     "files=" + pack("["+strings.Repeat(`{"path":"a","source":""},`, maxFiles)+`{"path":"a","source":""}]`),
		"no source":      "files=" + pack(`[{"path":"a"}]`),
		"null source":    "files=" + pack(`[{"path":"a","source":null}]`),
		"number":         "files=" + pack(`[{"path":"a","source":1}]`),
		"other case":     "files=" + pack(`[{"Path":"a","source":""}]`),
		"twice":          "files=" + pack(`[{"path":"a","path":"b","source":""}]`),
		"unknown member": "files=" + pack(`[{"path":"a","source":"","mode":1}]`),
		"text after":     "files=" + pack(`[{"path":"a","source":""}] 1`),
		"surrogate":      "files=" + pack(`[{"path":"a","source":"\ud800"}]`),
		"deep":           "files=" + pack(strings.Repeat("[", 100_000)),
	} {
		if in, err := Decode(fragment); err == nil {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

// pack returns E for any text.
func pack(text string) string {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		panic(err) // the level is constant
	}
	_, _ = w.Write([]byte(text)) // a bytes.Buffer never fails
	_ = w.Close()
	return base64.RawURLEncoding.EncodeToString(b.Bytes())
}

// FuzzDecode checks that accepted links are within the bounds, and encode to an equal link.
func FuzzDecode(f *testing.F) {
	f.Add("#src=" + pack("console.log(1)"))
	f.Add("files=" + pack(`[{"path":"src/main.ts","source":"1"}]`))
	f.Add("src=")
	f.Add("files=AAAA")
	f.Fuzz(func(t *testing.T, fragment string) {
		in, err := Decode(fragment)
		if err != nil {
			return
		}
		size := len(in.Source)
		for _, file := range in.Files {
			size += len(file.Path) + len(file.Source)
		}
		if size > maxText || len(in.Files) > maxFiles {
			t.Fatalf("%d bytes, %d files", size, len(in.Files))
		}
		again, err := Encode(in)
		if e, ok := errors.AsType[*snippets.InputError](err); ok && e.Code == snippets.InputTooLarge {
			return // its JSON had shorter escapes
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := Decode(again); err != nil || !cmp.Equal(in, out) {
			t.Errorf("%v\n%s", err, cmp.Diff(in, out))
		}
	})
}
