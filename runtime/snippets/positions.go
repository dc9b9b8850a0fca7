package snippets

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gaol/internal/lazyregexp"
)

// program maps a position in the snippet's module to the snippet's files. Lines and columns are counted from 1.
type program func(line, column int) (path string, l, c int, ok bool)

// inMain matches positions in the module, as V8 prints them.
var inMain = lazyregexp.New(`(?:file://)?/workspace/src/main\.mjs(?::(\d{1,9}):(\d{1,9}))?`)

// ofGaol matches gaol's own paths, which mean nothing to the authors of snippets.
var ofGaol = lazyregexp.New(`(?:file://)?(?:/workspace/(?:snippet|\.adapter|\.exports)\.mjs|/usr/libexec/gaol/\w+\.cjs|` + packagesDir + `/[\w./-]+)(?::\d+)*`)

// foreignFrames matches lines of a stack trace without a position in the snippet's files.
var foreignFrames = lazyregexp.New(`(?m)\n {4}at (?:[^\n(]*\(|async )?(?:node:|(?:file://)?(?:/usr/libexec/gaol/|` + packagesDir + `/|/workspace/(?:snippet|\.adapter|\.exports)\.mjs))[^\n]*$`)

// original returns the position of a match of inMain in the snippet's files.
func (p program) original(found []string) (Problem, bool) {
	line, _ := strconv.Atoi(found[1]) // nine digits at most; 0 if there is none
	column, _ := strconv.Atoi(found[2])
	path, l, c, ok := p(line, column)
	return Problem{Path: path, Line: l, Column: c}, ok
}

// locate replaces positions in the module by positions in the snippet's files, and omits other lines
// of stack traces.
func (p program) locate(text string) string {
	if strings.Contains(text, "\n    at ") {
		text = foreignFrames().ReplaceAllString(text, "")
	}
	if !strings.Contains(text, "js") { // true of most texts
		return text
	}
	text = inMain().ReplaceAllStringFunc(text, func(found string) string {
		if at, ok := p.original(inMain().FindStringSubmatch(found)); ok {
			return fmt.Sprintf("%s:%d:%d", at.Path, at.Line, at.Column)
		}
		return EntryPath
	})
	return ofGaol().ReplaceAllString(text, "gaol")
}

// frames returns the lines of a stack trace with positions in the snippet's files, and the first position.
func (p program) frames(stack string, most int) (kept []string, first Problem) {
	for line := range strings.Lines(stack) {
		if len(kept) == most {
			break
		}
		found := inMain().FindStringSubmatch(line)
		if found == nil || !strings.HasPrefix(line, "    at ") {
			continue
		}
		if at, ok := p.original(found); ok {
			first = cmp.Or(first, at)
			kept = append(kept, strings.TrimRight(p.locate(line), "\n"))
		}
	}
	return kept, first
}
