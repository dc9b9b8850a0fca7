package bundle

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
	"gaol/runtime/snippets/lint"
)

// A Job is one run of the linter and esbuild for the files of a snippet.
type Job struct {
	Files    []File
	Rules    *lint.Rules
	Mount    string
	Packages bool             // may be imported
	JSX      bool             // there is a package with the functions of JSX
	Entries  map[string]Entry // known entries, by specifier
}

// Built is the result of a Job.
type Built struct {
	Problems  []Problem // in the files
	Code      []byte
	SourceMap []byte
	Imported  []string // specifiers of packages, sorted
}

// A build is a Job with its state.
type build struct {
	*Job
	files        map[string]File   // by clean path
	languages    map[string]string // the extension of the language of each
	jsx, require bool              // the files may use them
	pragmas      string            // comments that select decorators, of all files

	mu       sync.Mutex
	imported map[string]bool
}

// Run checks the files by the rules, and runs esbuild if there are no problems.
func (j *Job) Run() Built {
	var problems []Problem
	if j.Rules != nil {
		for _, f := range j.Files {
			problems = append(problems, j.Rules.Check(f.Path, f.Source)...)
		}
	}
	if len(problems) > 0 {
		return Built{Problems: problems[:min(len(problems), maxProblems)]}
	}
	b := &build{Job: j, files: map[string]File{}, languages: map[string]string{}, imported: map[string]bool{}}
	for _, f := range j.Files {
		if path.Clean(f.Path) == "tsconfig.json" { // has comments, and cannot be imported
			b.pragmas += snippet.Pragmas(f.Source)
			continue
		}
		ext, err := snippet.CheckFile(f.Path, f.Source)
		if err != nil {
			return Built{Problems: []Problem{{Path: f.Path, Line: err.Line, Column: err.Column, Message: err.Message}}}
		}
		b.files[path.Clean(f.Path)], b.languages[path.Clean(f.Path)] = f, ext
		b.require = b.require || strings.Contains(f.Source, "require") || strings.Contains(f.Source, `\u`)
		b.jsx = b.jsx || ext == ".tsx" || ext == ".jsx"
		if snippet.LegacyDecorators(f.Source) {
			b.pragmas += f.Source
		}
	}
	r := api.Build(b.options())
	out := Built{Problems: b.problems(r.Errors), Imported: slices.Sorted(maps.Keys(b.imported))}
	for _, f := range r.OutputFiles {
		if strings.HasSuffix(f.Path, ".map") {
			out.SourceMap = f.Contents
		} else {
			out.Code = f.Contents
		}
	}
	if snippet.UsesMetadata(b.pragmas, string(out.Code)) {
		return Built{Problems: []Problem{{Path: EntryPath, Line: 1, Column: 1, Message: snippet.NoMetadata}}}
	}
	return out
}

// placeholder replaces the folder of the set in paths while that is unknown. It has the same
// length, so that columns do not change. A snippet that contains it as a path reads the set's folder, as it may.
const placeholder = "folder-of-packages-not-yet-known"

// dirLength is the length of a set's Dir.
const dirLength = 32

// options are esbuild's options for a snippet.
func (b *build) options() api.BuildOptions {
	o := api.BuildOptions{
		EntryPoints:    []string{"/nonexistent/entry"}, // esbuild looks for it in the folder
		Plugins:        []api.Plugin{{Name: "snippet", Setup: b.setUp}},
		Bundle:         true,
		Format:         api.FormatESModule,
		Platform:       api.PlatformNode,
		Target:         api.ESNext,
		Supported:      map[string]bool{"decorators": false}, // V8 does not support them yet
		TsconfigRaw:    snippet.Config(b.pragmas),            // so that esbuild does not search for one
		Charset:        api.CharsetUTF8,
		LegalComments:  api.LegalCommentsNone,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		LogLevel:       api.LogLevelSilent,
		LogOverride:    silenced,
		AbsWorkingDir:  "/",
		Outfile:        "/snippet.js",
	}
	if b.require {
		// ES modules have no require, and for require('./' + x), esbuild would search the host's
		// folders. It takes time to copy esbuild's own definitions.
		o.Define = map[string]string{"require": "globalThis.require"}
	}
	if b.jsx && b.JSX {
		o.JSX = api.JSXAutomatic
	}
	return o
}

// silenced are warnings, which this package ignores. For each, esbuild would count lines.
var silenced = map[string]api.LogLevel{
	"import-is-undefined":    api.LogLevelSilent,
	"duplicate-object-key":   api.LogLevelSilent,
	"duplicate-case":         api.LogLevelSilent,
	"duplicate-class-member": api.LogLevelSilent,
	"direct-eval":            api.LogLevelSilent,
}

// A Program is a bundled snippet: an ES module that exports what its entry exports.
type Program struct {
	Code string

	// Packages are the specifiers of the imported modules of packages, by path in the sandbox.
	Packages map[string]string

	sources func() (*snippet.SourceMap, error) // parsed at first use
	files   map[string]File
}

// Position maps a line and a column of Code to the original file, line and column. All count
// from 1, and columns count UTF-16 code units, as V8 prints them. A column maps to the last position
// before it that the source map contains. ok is false for code that no file of the snippet contains.
func (p *Program) Position(line, column int) (path string, l, c int, ok bool) {
	sources, err := p.sources()
	if err != nil || line < 1 || column < 1 {
		return "", 0, 0, false
	}
	at, known := sources.Original(line-1, column-1)
	name, inFile := strings.CutPrefix(at.Source, nsFile+":")
	f, found := p.files[name]
	if !known || !inFile || !found {
		return "", 0, 0, false
	}
	return f.Path, at.Line + 1, at.Column + 1, true
}

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
			if name, inFile := strings.CutPrefix(at.File, nsFile+":"); inFile {
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
