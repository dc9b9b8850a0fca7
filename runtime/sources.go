package runtime

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"gaol/internal/snippet"
)

// sources are the code that places in stack traces are of: that of a snippet, or of a
// context's cells.
type sources struct {
	file string // the snippet's path in the guest; empty for cells

	mu     sync.Mutex
	list   map[string]source // by the name that it bears in the guest
	names  []string          // the oldest first
	inside int               // bytes of them all
}

// source is code as it was given, and what was made of it.
type source struct {
	program *snippet.Program
	code    string
}

// maxSources is how many bytes of code a context remembers. Places of older cells are
// told by name alone.
const maxSources = 8 << 20

func newSources() *sources { return &sources{list: map[string]source{}} }

func (s *sources) add(name string, p *snippet.Program, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[name] = source{p, code}
	s.names = append(s.names, name)
	s.inside += s.list[name].size()
	for s.inside > maxSources && len(s.names) > 1 {
		oldest := s.names[0]
		s.inside -= s.list[oldest].size()
		delete(s.list, oldest)
		s.names = s.names[1:]
	}
}

func (s source) size() int {
	const own = 512 // of what is kept besides
	return own + len(s.code) + len(s.program.Code)
}

// position is a place in one of them, as V8 prints it: a snippet is a module in some
// folder, a cell has but its name.
var position = regexp.MustCompile(`(?:file://(/(?:\S*?/)?snippet\.mjs)|(^|[\s(])(cell-\d{1,9}\.js)):(\d{1,9}):(\d{1,9})`)

// isOwn reports whether a path, as it stands in a URL, is the snippet's. The guest may have
// files of that name elsewhere.
func (s *sources) isOwn(path string) bool {
	path, err := url.PathUnescape(path)
	return err == nil && path == s.file && path != ""
}

// place is one in the code as it was given.
type place struct {
	name         string
	line, column int
	code         string
}

// original is the place that position has found. It reports false for what is gaol's own
// addition, or is not known.
func (s *sources) original(found []string) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := found[3]
	if s.isOwn(found[1]) {
		name = snippetName
	}
	from, known := s.list[name]
	if !known {
		return place{}, false
	}
	line, _ := strconv.Atoi(found[4]) // nine digits at most
	column, _ := strconv.Atoi(found[5])
	if line == 0 && column == 0 {
		line, column = from.value()
	}
	for ahead := range widestAddition {
		if l, c, ok := from.program.Position(line, column+ahead); ok {
			return place{name, l, c, from.code}, true
		}
	}
	return place{}, false
}

// beforeValue is what package snippet writes before the expression that is a cell's value.
const beforeValue = "await ("

// value is the place in the guest's code of a cell's value, which its half knows as 0:0. It
// is 0:0 where there is none, or may be one of several.
func (s source) value() (line, column int) {
	const most = 8 // that are looked at: code may have any number of them
	code := s.program.Code
	for range most {
		at := strings.LastIndex(code, beforeValue)
		if at < 0 {
			break
		}
		code = code[:at]
		l, c := endOf(code)
		insideLine, insideColumn, _ := s.program.Position(l, c+len(beforeValue))
		if ownLine, ownColumn, ok := s.program.Position(l, c); !ok || ownLine != insideLine || ownColumn != insideColumn {
			continue // the cell's own await
		}
		if line > 0 {
			return 0, 0
		}
		line, column = l, c
	}
	return line, column
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// endOf is the place behind a text, as V8 counts.
func endOf(text string) (line, column int) {
	text = lineEnds.Replace(text)
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return 1 + strings.Count(text, "\n"), 1 + len(utf16.Encode([]rune(last)))
}

// widestAddition is more than what is put before an expression that is a value, as
// "globalThis.__evaluated(await (": V8 tells of names that are not there at its beginning.
const widestAddition = 32

// relocate has places in a text be those of the code as it was given.
func (s *sources) relocate(text string) string {
	if !strings.Contains(text, "js:") { // as nearly all of it
		return text
	}
	return position.ReplaceAllStringFunc(text, func(found string) string {
		parts := position.FindStringSubmatch(found)
		if p, ok := s.original(parts); ok {
			return fmt.Sprintf("%s%s:%d:%d", parts[2], p.name, p.line, p.column)
		}
		switch {
		case parts[1] == "":
			return parts[2] + parts[3]
		case s.isOwn(parts[1]):
			return snippetName
		}
		return found
	})
}

// mostPlaces is how many of a stack are looked at.
const mostPlaces = 32

// frame shows the lines around the first place of a stack that is known.
func (s *sources) frame(stack string) string {
	for _, found := range position.FindAllStringSubmatch(stack, mostPlaces) {
		if p, ok := s.original(found); ok {
			return snippet.Frame(p.code, p.line, p.column)
		}
	}
	return ""
}

// stack leaves out the frames that are Node's and gaol's.
func (s *sources) stack(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		isFrame := strings.HasPrefix(line, "    at ")
		if isFrame && (strings.Contains(line, "(node:") || strings.Contains(line, " node:") || strings.Contains(line, guestFolder) || strings.Contains(line, "__evaluated")) {
			continue
		}
		kept = append(kept, s.relocate(line))
	}
	return strings.Join(kept, "\n")
}
