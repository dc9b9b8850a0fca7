package bundle

import (
	"strings"
	"sync"

	"gaol/internal/sourcemap"
)

// A Program is a bundled snippet: an ES module that exports what its entry exports.
type Program struct {
	Code string

	sourceMap []byte
	files     map[string]File
	once      sync.Once
	parsed    *sourcemap.Map
}

// Position maps a line and a column of Code to the file, line and column that they come
// from. All count from 1, and columns count UTF-16 code units, as V8 prints them. A column
// maps to the last position before it that the source map contains. ok is false for code
// that no file of the snippet contains.
func (p *Program) Position(line, column int) (path string, l, c int, ok bool) {
	p.once.Do(func() { p.parsed, _ = sourcemap.Parse(p.sourceMap) })
	if p.parsed == nil || line < 1 || column < 1 {
		return "", 0, 0, false
	}
	at, known := p.parsed.Original(line-1, column-1)
	name, inFile := strings.CutPrefix(at.Source, nsFile+":")
	f, found := p.files[name]
	if !known || !inFile || !found {
		return "", 0, 0, false
	}
	return f.Path, at.Line + 1, at.Column + 1, true
}
