package examplecheck

import (
	"os"
	"path/filepath"

	"gaol/runtime/snippets"
)

// Example is code that should work, and where it is.
type Example struct {
	File string // the file that contains it, as reports name it
	Line int    // where it begins: 1, or the line of a fence
	Name string // its name in a page, such as "counter", or "#2" for the second without a name; "" for a code file

	Files []snippets.File // with src/main.ts

	Skip      string // why it is not run; "" if it is
	WantError bool   // it must report an error
	ErrorText string // which contains this

	// Fault says why it cannot be run, such as a wrong attribute of its fence.
	Fault string

	folder  *folder
	sources map[string]source // by path in Files
}

// source maps the lines of a file of an example to where they are written.
type source struct {
	file  string
	lines []place // nil: the same lines of file
}

// place is where a line begins.
type place struct {
	line   int // from 1
	column int // UTF-16 code units before it: the mark of a quote, the indentation of a list
}

// Position returns where a position in one of e's Files is written. Lines and columns count
// from 1, columns in UTF-16 code units. It is false for paths that e does not have.
func (e *Example) Position(path string, line, column int) (file string, l, c int, ok bool) {
	s, ok := e.sources[path]
	if !ok || s.lines == nil {
		return s.file, line, column, ok
	}
	if n := len(s.lines); line > n { // the end of the code, where the closing fence is
		last := place{line: e.Line}
		if n > 0 {
			last = s.lines[n-1]
		}
		return s.file, last.line + 1, 1, true
	}
	at := s.lines[max(line, 1)-1]
	return s.file, at.line, at.column + column, true
}

// folder is a folder that a PATH names, or that contains the file that it names.
type folder struct {
	root *os.Root
	name string // as reports name it
}

// shown returns the name of a file of the folder for reports.
func (f *folder) shown(path string) string { return filepath.Join(f.name, path) }

// path returns the path in the folder of a file that shown has named.
func (f *folder) path(shown string) (string, error) { return filepath.Rel(f.name, shown) }
