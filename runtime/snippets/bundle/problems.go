package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
)

const (
	maxProblems = 20
	maxText     = 300 // bytes of a name or a message

	notFound = "cannot find package %q in the packages of this sandbox"
)

// problems returns esbuild's errors in the files of the snippet.
func (b *build) problems(messages []api.Message) []Problem {
	var list []Problem
	for _, m := range messages[:min(len(messages), maxProblems)] {
		p := Problem{b.Entry, 1, 1, messageText(m.Text)}
		if at := m.Location; at != nil {
			name, inFile := strings.CutPrefix(at.File, nsFile+":")
			if inFile {
				p.Path, p.Line, p.Column = b.files[name].Path, at.Line, utf16Column(at.LineText, at.Column)
			}
		}
		list = append(list, p)
	}
	return list
}

var (
	missingExport = lazyregexp.New(`^No matching export in "(?:[a-z]+:)?(.*)" for import "(.*)"$`)
	namespaces    = lazyregexp.New(`"(?:` + nsFile + `|` + nsReplaced + `|` + nsPackage + `):`)
)

// messageText returns esbuild's text without the names of our namespaces.
func messageText(text string) string {
	if m := missingExport().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%q is not exported by %q", clip(m[2]), clip(m[1]))
	}
	return clip(namespaces().ReplaceAllString(text, `"`))
}

// clip shortens a text that may be as long as the snippet.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// utf16Column converts esbuild's column, which counts bytes from 0.
func utf16Column(line string, column int) int {
	return utf16Length(line[:min(max(column, 0), len(line))]) + 1
}

// utf16Length returns the length of text in UTF-16 code units.
func utf16Length(text string) (n int) {
	for _, r := range text {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// maxKey bounds the names in JSON files: they are exports, see maxName in internal/snippet.
const maxKey = 256

// checkJSON checks a file of JSON with the parser of Go, which limits how deep it nests.
func checkJSON(f File) (p Problem, bad bool) {
	at := func(offset int64, text string) (Problem, bool) {
		before := f.Source[:min(max(int(offset)-1, 0), len(f.Source))]
		line := strings.Count(before, "\n") + 1
		return Problem{f.Path, line, utf16Length(before[strings.LastIndexByte(before, '\n')+1:]) + 1, text}, true
	}
	if !utf8.ValidString(f.Source) {
		return at(0, "the file is not UTF-8")
	}
	if !json.Valid([]byte(f.Source)) {
		var v json.RawMessage
		err := json.Unmarshal([]byte(f.Source), &v)
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			return at(e.Offset, e.Error())
		}
		return at(0, "invalid JSON")
	}
	var object map[string]json.RawMessage
	_ = json.Unmarshal([]byte(f.Source), &object) // other values have no names
	for key := range object {
		if len(key) > maxKey {
			return at(0, "a key of the object is too long")
		}
	}
	return Problem{}, false
}
