package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"gaol/internal/snippet"
)

// File is a file of a snippet.
type File struct {
	Path   string `json:"path"` // such as src/main.ts
	Source string `json:"source"`
}

// Problem is an error at a position.
type Problem struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`   // from 1
	Column  int    `json:"column"` // from 1, in UTF-16 code units
	Message string `json:"message"`
}

// Options are the options of [Bundle].
type Options struct {
	// Entry is the path of the file that runs. Its exports are those of the program. Empty:
	// src/main.ts.
	Entry string

	// Packages are the packages that the files may import. Nil: none.
	Packages *Packages

	// Mount is the absolute path in the sandbox where Packages.Dir is mounted. It consists of
	// letters, digits and . _ / -
	Mount string

	// Replace maps specifiers of packages to the source of an ES module in JavaScript that
	// takes the package's place. In it, the same specifier means the package.
	Replace map[string]string

	// Timeout is the time for esbuild. Zero: 5 s.
	Timeout time.Duration
}

const (
	defaultEntry   = "src/main.ts"
	defaultTimeout = 5 * time.Second

	// maxBytes bounds the files of a snippet together.
	maxBytes = 256 << 10
)

// Bundle bundles files. Problems are errors in them, at most 20; then there is no program.
// The error is one of the host, or ctx's.
func Bundle(ctx context.Context, files []File, o Options) (*Program, []Problem, error) {
	if o.Packages != nil && !validMount(o.Mount) {
		return nil, nil, fmt.Errorf("bundle: mount %q: not a clean absolute path of letters, digits and . _ / -", o.Mount)
	}
	b, problems := newBuild(files, o)
	if len(problems) > 0 {
		return nil, problems, nil
	}
	return b.bundle(ctx)
}

var mountPath = regexp.MustCompile(`^(/[\w.-]+)+$`)

func validMount(name string) bool { return mountPath.MatchString(name) && path.Clean(name) == name }

// newBuild checks the files.
func newBuild(files []File, o Options) (*build, []Problem) {
	b := &build{Options: o, files: make(map[string]File, len(files)), languages: make(map[string]string, len(files))}
	if b.Entry == "" {
		b.Entry = defaultEntry
	}
	if b.Timeout == 0 {
		b.Timeout = defaultTimeout
	}
	total := 0
	var estimate snippet.Estimate
	for _, f := range files {
		if total += len(f.Source); total > maxBytes {
			return nil, []Problem{{f.Path, 1, 1, fmt.Sprintf("the files have more than %d bytes", maxBytes)}}
		}
		ext := snippet.Language(f.Path, f.Source)
		if p, bad := check(&estimate, f, ext); bad {
			return nil, []Problem{p}
		}
		b.files[path.Clean(f.Path)], b.languages[path.Clean(f.Path)] = f, ext
		b.require = b.require || strings.Contains(f.Source, "require") || strings.Contains(f.Source, `\u`)
		b.jsx = b.jsx || ext == ".tsx" || ext == ".jsx"
	}
	if _, found := b.files[path.Clean(b.Entry)]; !found {
		return nil, []Problem{{b.Entry, 1, 1, "this file is missing"}}
	}
	return b, nil
}

// check rejects files for which esbuild could take too much time or memory.
func check(estimate *snippet.Estimate, f File, ext string) (p Problem, bad bool) {
	if ext == ".json" {
		return checkJSON(f)
	}
	err := estimate.Add(strings.TrimSuffix(f.Path, path.Ext(f.Path))+ext, f.Source)
	if err == nil {
		return Problem{}, false
	}
	return Problem{f.Path, err.Line, err.Column, err.Message}, true
}

// sourceMapComments are comments for which esbuild reads files of the host.
var sourceMapComments = regexp.MustCompile(`(/[/*][#@] sourceMapping)URL=`)

// bundle runs esbuild. The names that packages export are usually known from earlier
// snippets. If not, the first run shows which packages the files import, and the second
// one checks the names.
func (b *build) bundle(ctx context.Context) (*Program, []Problem, error) {
	const attempts = 4 // more only if the packages keep changing
	for range attempts {
		result, err := b.run(ctx)
		if err != nil {
			return nil, nil, err
		}
		set, err := b.set(ctx)
		switch {
		case err != nil:
			return nil, nil, err
		case !b.matches(set):
			b.entries = maps.Clone(set.Entries)
			continue
		case len(result.Errors) > 0:
			return nil, b.problems(result.Errors), nil
		case set.Dir == "" && len(b.imported) > 0:
			return nil, nil, errors.New("bundle: esbuild ignored the problems of packages")
		}
		return b.program(result, set), nil, nil
	}
	return nil, nil, fmt.Errorf("bundle: the packages in %s keep changing", b.Packages.folder)
}

// set returns the set of the packages that the last run imports.
func (b *build) set(ctx context.Context) (*set, error) {
	if b.Packages == nil || len(b.imported) == 0 {
		return &set{}, nil
	}
	list := make([]string, 0, len(b.imported))
	for specifier := range b.imported {
		list = append(list, specifier)
	}
	slices.Sort(list)
	return b.Packages.set(ctx, list)
}

// matches reports whether the last run used the packages of the set.
func (b *build) matches(s *set) bool {
	if b.Packages == nil {
		return true
	}
	for specifier := range b.imported {
		used, ok := b.entries[specifier]
		if !ok || !used.equal(s.Entries[specifier]) {
			return false
		}
	}
	return true
}

// program returns the result of the last run.
func (b *build) program(r result, s *set) *Program {
	code := strings.ReplaceAll(r.code, b.Mount+"/"+placeholder, b.Mount+"/"+s.Dir)
	return &Program{Code: code, sourceMap: r.sourceMap, files: b.files}
}
