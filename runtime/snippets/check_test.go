package snippets

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func file(path string) File { return File{Path: path, Source: "1"} }

var largeSource = strings.Repeat("x", MaxBytes-1)

func manyFiles() []File {
	files := []File{file(EntryPath)}
	for i := range MaxFiles {
		files = append(files, file(fmt.Sprintf("src/%d.ts", i)))
	}
	return files
}

// inputs are inputs with the code of their error; empty: none.
var inputs = map[string]struct {
	in   Input
	code string
}{
	"source":              {Input{Source: "1"}, ""},
	"source at the limit": {Input{Source: largeSource + "x"}, ""},
	"files":               {Input{Files: []File{file(EntryPath), file("src/a/b-c_d.1.ts"), file("data.json")}}, ""},
	"ten files":           {Input{Files: manyFiles()[:MaxFiles]}, ""},
	"files at the limit":  {Input{Files: []File{file(EntryPath), {Path: "a.ts", Source: largeSource}}}, ""},
	"a long path":         {Input{Files: []File{file(EntryPath), file(strings.Repeat("x", 128))}}, ""},

	"nothing":              {Input{}, InputInvalid},
	"both":                 {Input{Source: "1", Files: []File{file(EntryPath)}}, InputInvalid},
	"both, without files":  {Input{Source: "1", Files: []File{}}, InputInvalid},
	"no files":             {Input{Files: []File{}}, InputInvalid},
	"eleven files":         {Input{Files: manyFiles()}, InputInvalid},
	"no main":              {Input{Files: []File{file("src/a.ts")}}, InputInvalid},
	"another main":         {Input{Files: []File{file("src/main.js")}}, InputInvalid},
	"a path twice":         {Input{Files: []File{file(EntryPath), file(EntryPath)}}, InputInvalid},
	"a large source":       {Input{Source: largeSource + "xx"}, InputTooLarge},
	"large in UTF-8":       {Input{Source: strings.Repeat("é", MaxBytes/2+1)}, InputTooLarge},
	"large files":          {Input{Files: []File{file(EntryPath), {Path: "a.ts", Source: largeSource + "x"}}}, InputTooLarge},
	"an empty file":        {Input{Files: []File{file(EntryPath), {Path: "a.ts"}}}, InputInvalid},
	"a source in Latin-1":  {Input{Source: "'\xe9'"}, InputInvalid},
	"an empty path":        {Input{Files: []File{file(EntryPath), file("")}}, InputInvalid},
	"an absolute path":     {Input{Files: []File{file(EntryPath), file("/etc/passwd")}}, InputInvalid},
	"a parent":             {Input{Files: []File{file(EntryPath), file("../a.ts")}}, InputInvalid},
	"a parent inside":      {Input{Files: []File{file(EntryPath), file("src/../../a.ts")}}, InputInvalid},
	"a longer form":        {Input{Files: []File{file(EntryPath), file("src/./a.ts")}}, InputInvalid},
	"a folder":             {Input{Files: []File{file(EntryPath), file("src/")}}, InputInvalid},
	"the folder itself":    {Input{Files: []File{file(EntryPath), file(".")}}, InputInvalid},
	"spaces":               {Input{Files: []File{file(EntryPath), file("src/a b.ts")}}, InputInvalid},
	"a newline at the end": {Input{Files: []File{file(EntryPath), file("src/a.ts\n")}}, InputInvalid},
	"other letters":        {Input{Files: []File{file(EntryPath), file("src/é.ts")}}, InputInvalid},
	"a longer path":        {Input{Files: []File{file(EntryPath), file(strings.Repeat("x", 129))}}, InputInvalid},
}

func TestCheck(t *testing.T) {
	for name, tc := range inputs {
		_, _, err := tc.in.check()
		wrong, ok := errors.AsType[*InputError](err)
		if ok != (tc.code != "") || ok && (wrong.Code != tc.code || wrong.Error() == "") {
			t.Errorf("%s: %v, want code %q", name, err, tc.code)
		}
	}
}

func TestCheckTimeout(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, -1: 100 * time.Millisecond, 1: 100 * time.Millisecond, time.Second: time.Second, time.Hour: 10 * time.Second,
	} {
		if _, got, err := (Input{Source: "1", Timeout: given}).check(); got != want || err != nil {
			t.Errorf("%v: %v, %v", given, got, err)
		}
	}
}

// A report is only accepted in its exact form.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"facts":"{\"a\": 1}","derived":"{}","errors":["e"]}`))
	f.Add([]byte(`{"facts":"[]"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		out := newOutput()
		out.addReport(text, func(text string) string { return text })
		for _, object := range []string{string(out.Facts), string(out.Derived)} {
			if !strings.HasPrefix(object, "{") || !strings.HasSuffix(object, "}") {
				t.Errorf("%q", object)
			}
		}
	})
}
