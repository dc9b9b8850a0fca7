package snippet

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gaol/internal/lazyregexp"
)

// FileName is the module name of a snippet in the guest. Cells are named cell-1.js and so on.
const FileName = "snippet.mjs"

// Sources is the code of a snippet, or of the cells of a context. A nil *Sources leaves
// texts unchanged. It is safe for concurrent use.
type Sources struct {
	file      string // the snippet's path in the guest; empty for cells
	gaolFiles string // folder of gaol's own JavaScript

	mu    sync.Mutex
	list  map[string]source // by name
	names []string          // the oldest first
	size  int               // bytes of all of them
}

// source is a piece of code with its rewritten form.
type source struct {
	program *Program
	code    string
}

// maxSources is how many bytes of code a context remembers. Positions in older cells become the
// cell's name.
const maxSources = 8 << 20

// NewSources returns empty sources. file is the path that a snippet has in the guest, or empty.
// gaolFiles is the folder of gaol's own JavaScript, whose frames Stack leaves out.
func NewSources(file, gaolFiles string) *Sources {
	return &Sources{file: file, gaolFiles: gaolFiles, list: map[string]source{}}
}

// Add adds code under the name that it has in the guest.
func (s *Sources) Add(name string, p *Program, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[name] = source{p, code}
	s.names = append(s.names, name)
	s.size += s.list[name].size()
	for s.size > maxSources && len(s.names) > 1 {
		oldest := s.names[0]
		s.size -= s.list[oldest].size()
		delete(s.list, oldest)
		s.names = s.names[1:]
	}
}

func (s source) size() int {
	size := 512 + len(s.code) + len(s.program.Text)
	for _, t := range s.program.Stages {
		size += 32*len(t.Pieces) + len(t.From) + len(t.To) + len(t.Map)
	}
	return size
}

// codePosition matches a source position as printed by V8: a snippet by its file URL, a cell only by its
// name.
var codePosition = lazyregexp.New(`(?:file://(/(?:\S*?/)?snippet\.mjs)|(^|[\s(])(cell-\d{1,9}\.js)):(\d{1,9}):(\d{1,9})`)

// isSnippet reports whether a URL's path is the snippet's. The guest may have files of that
// name elsewhere.
func (s *Sources) isSnippet(path string) bool {
	path, err := url.PathUnescape(path)
	return err == nil && path == s.file && path != ""
}

// place is a position in the code as it was given.
type place struct {
	name         string
	line, column int
	code         string
}

// original returns the place of a match of codePosition. It returns false for code that gaol has
// added, and for unknown sources.
func (s *Sources) original(found []string) (place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := found[3]
	if s.isSnippet(found[1]) {
		name = FileName
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
	for ahead := range maxAddition {
		if l, c, ok := from.program.Position(line, column+ahead); ok {
			return place{name, l, c, from.code}, true
		}
	}
	return place{}, false
}

// beforeValue is the text that package snippet adds before the expression of a cell's value.
const beforeValue = "await ("

// value returns the position of a cell's value in the rewritten code, which the guest's half
// reports as 0:0. It returns 0:0 if there is none, or more than one candidate.
func (s source) value() (line, column int) {
	stages, code := s.program.Stages, s.program.Text
	if len(stages) == 0 {
		return 0, 0
	}
	for _, p := range stages[len(stages)-1].Pieces {
		added := p.Known && !p.Copied && p.After >= 0 && p.After <= len(code)
		if !added || !strings.HasPrefix(code[p.After:], beforeValue) {
			continue
		}
		if line > 0 {
			return 0, 0
		}
		line, column = PositionOf(code, p.After)
	}
	return line, column
}

// maxAddition is more than the length of the code added before an expression that is a value,
// such as "globalThis.__evaluated(await (". V8 reports undefined names at its beginning.
const maxAddition = 32

// Relocate replaces the positions in a text by those in the original code.
func (s *Sources) Relocate(text string) string {
	if s == nil || !strings.Contains(text, "js:") { // true of nearly all texts
		return text
	}
	return codePosition().ReplaceAllStringFunc(text, func(found string) string {
		parts := codePosition().FindStringSubmatch(found)
		if p, ok := s.original(parts); ok {
			return fmt.Sprintf("%s%s:%d:%d", parts[2], p.name, p.line, p.column)
		}
		switch {
		case parts[1] == "":
			return parts[2] + parts[3]
		case s.isSnippet(parts[1]):
			return FileName
		}
		return found
	})
}

// maxPositions is how many positions of a stack Frame tries.
const maxPositions = 32

// Frame returns the lines of code around the first known position of a stack, or "".
func (s *Sources) Frame(stack string) string {
	if s == nil {
		return ""
	}
	for _, found := range codePosition().FindAllStringSubmatch(stack, maxPositions) {
		if p, ok := s.original(found); ok {
			return Frame(p.code, p.line, p.column)
		}
	}
	return ""
}

// Log relocates a text that the guest has printed, and removes gaol's frames from the stack traces in
// it, with Node's frames around them.
func (s *Sources) Log(text string) string {
	if s == nil || !strings.Contains(text, s.gaolFiles) {
		return s.Relocate(text)
	}
	frames := regexp.MustCompile(`(?:(?:^|\n)` + s.foreignFrame() + `)+`)
	return s.Relocate(frames.ReplaceAllStringFunc(text, func(frames string) string {
		if !strings.Contains(frames, s.gaolFiles) {
			return frames
		}
		return frames[1+strings.LastIndexAny(frames, ")0123456789"):] // such as the brace before properties
	}))
}

// foreignFrame returns an expression for a stack frame of Node or gaol.
func (s *Sources) foreignFrame() string {
	return ` *at\b[^\n]*(?:[( ]node:|__evaluated|` + regexp.QuoteMeta(s.gaolFiles) + `)[^\n]*`
}

// Stack relocates a stack trace, without the frames of Node and gaol.
func (s *Sources) Stack(text string) string {
	if s == nil {
		return text
	}
	frames := regexp.MustCompile(`(?m)^` + s.foreignFrame() + `\n?`)
	return s.Relocate(strings.TrimSuffix(frames.ReplaceAllString(text, ""), "\n"))
}
