package snippets

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundTrip(t *testing.T) {
	for name, in := range map[string]Input{
		"source":   {Source: "export const x = 1\n"},
		"unicode":  {Source: "// 𝒳 é \u2028 </script> & \x00"},
		"longest":  {Source: strings.Repeat("ab", MaxBytes/2)},
		"files":    {Files: []File{{Path: "src/main.ts", Source: "import './x.js'"}, {Path: "src/x.ts", Source: "<&>\u2028"}}},
		"no lines": {Files: []File{{Path: "src/main.ts"}}},
	} {
		fragment, err := EncodeLink(in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.ContainsAny(fragment[strings.Index(fragment, "=")+1:], "+/=#% ") {
			t.Errorf("%s: %q needs escapes in a URL", name, fragment)
		}
		for _, prefix := range []string{"", "#"} {
			if out, err := DecodeLink(prefix + fragment); err != nil || !cmp.Equal(in, out) {
				t.Errorf("%s: %v\n%s", name, err, cmp.Diff(in, out))
			}
		}
	}
}

// The format is fixed: links that people have shared must continue to work.
func TestFormat(t *testing.T) {
	if in, err := DecodeLink("#src=" + pack("console.log(1)")); err != nil || in.Source != "console.log(1)" {
		t.Errorf("%q, %v", in.Source, err)
	}
	// As a browser makes it: CompressionStream("deflate-raw").
	if in, err := DecodeLink("src=S87PK87PSdXLyU_XMNQEAA"); err != nil || in.Source != "console.log(1)" {
		t.Errorf("%q, %v", in.Source, err)
	}
	in, err := DecodeLink("#files=" + pack(`[{"path":"src/main.ts","source":"1"}]`))
	if want := []File{{Path: "src/main.ts", Source: "1"}}; err != nil || !cmp.Equal(want, in.Files) {
		t.Errorf("%+v, %v", in, err)
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

func TestDecodeRefuses(t *testing.T) {
	stored := base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("\x00\x00\x00\xff\xff", maxEncoded/5)))
	for name, fragment := range map[string]string{
		"nothing":        "",
		"other name":     "source=" + pack("1"),
		"no data":        "src=",
		"empty source":   "src=" + pack(""),
		"bomb":           "src=" + pack(strings.Repeat("a", 100*MaxBytes)),
		"one too many":   "src=" + pack(strings.Repeat("a", MaxBytes+1)),
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
		"many files":     "files=" + pack("["+strings.Repeat(`{"path":"a","source":""},`, MaxFiles)+`{"path":"a","source":""}]`),
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
		if in, err := DecodeLink(fragment); err == nil {
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
		in, err := DecodeLink(fragment)
		if err != nil {
			return
		}
		size := len(in.Source)
		for _, file := range in.Files {
			size += len(file.Path) + len(file.Source)
		}
		if size > MaxBytes || len(in.Files) > MaxFiles {
			t.Fatalf("%d bytes, %d files", size, len(in.Files))
		}
		again, err := EncodeLink(in)
		if e, ok := errors.AsType[*InputError](err); ok && e.Code == InputTooLarge {
			return // its JSON had shorter escapes
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, err := DecodeLink(again); err != nil || !cmp.Equal(in, out) {
			t.Errorf("%v\n%s", err, cmp.Diff(in, out))
		}
	})
}
