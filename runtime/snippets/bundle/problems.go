package bundle

import (
	"fmt"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

const (
	maxProblems = 20
	maxText     = 300 // bytes of a name or a message of esbuild
	maxMessage  = 4 << 10

	notFound = "cannot find package %q in the packages of this sandbox"
)

// problems returns esbuild's errors in the files of the snippet.
func (b *build) problems(messages []api.Message) []Problem {
	var list []Problem
	for _, m := range messages[:min(len(messages), maxProblems)] {
		p := Problem{Path: EntryPath, Line: 1, Column: 1, Message: messageText(m.Text)}
		if at := m.Location; at != nil {
			name, inFile := strings.CutPrefix(at.File, nsFile+":")
			if inFile {
				p.Path, p.Line = b.files[name].Path, at.Line
				_, p.Column = snippet.PositionOf(at.LineText, at.Column) // esbuild counts bytes from 0
			}
		}
		list = append(list, p)
	}
	return list
}

var (
	missingExport = lazyregexp.New(`^No matching export in "(?:[a-z]+:)?(.*)" for import "(.*)"$`)
	namespaces    = lazyregexp.New(`"(?:` + nsFile + `|` + nsPackage + `):`)
)

// messageText returns esbuild's text without the names of our namespaces.
func messageText(text string) string {
	if m := missingExport().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%q is not exported by %q", snippet.Shorten(m[2], maxText), snippet.Shorten(m[1], maxText))
	}
	return snippet.Shorten(namespaces().ReplaceAllString(text, `"`), maxText)
}
