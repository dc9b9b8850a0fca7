package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
	"gaol/runtime/snippets/lint"
)

// File is a file of a snippet.
type File struct {
	Path   string `json:"path"` // such as src/main.ts
	Source string `json:"source"`
}

// Problem is an error at a position.
type Problem = lint.Problem

// Options are the options of [Bundle].
type Options struct {
	// Packages are the packages that the files may import. Nil: none.
	Packages *Packages

	// Mount is the clean absolute path in the sandbox where Packages.Dir is mounted.
	Mount string

	// Rules are the lint rules for the files. Nil: none.
	Rules *lint.Rules

	// Run is [Job.Run] in a process that may be killed: hostile files can use unbounded time and memory.
	Run func(context.Context, Job) (Built, error)
}

// EntryPath is the path of the file that runs. The program exports its exports.
const EntryPath = "src/main.ts"

// Bundle bundles files. Problems are errors in them, at most 20; then there is no program.
// The error is the host's or ctx's.
func Bundle(ctx context.Context, files []File, o Options) (*Program, []Problem, error) {
	j := Job{Files: files, Rules: o.Rules, Mount: o.Mount}
	if j.Packages = o.Packages != nil; j.Packages {
		j.JSX = o.Packages.hasFile("react/jsx-runtime.js") // of a React with a JSX runtime
		j.Entries = o.Packages.mentioned(files)
	}
	return j.bundle(ctx, o)
}

// sourceMapComments are comments for which esbuild reads files of the host.
var sourceMapComments = lazyregexp.New(`(/[/*][#@] sourceMapping)URL=`)

// bundle runs esbuild. The names that packages export are usually known from earlier
// snippets. If not, the first run shows which packages the files import, and the second
// one checks the names.
func (j *Job) bundle(ctx context.Context, o Options) (*Program, []Problem, error) {
	const attempts = 4 // more only if the packages keep changing
	for range attempts {
		r, err := o.Run(ctx, *j)
		if err != nil {
			return nil, nil, err
		}
		set, err := j.set(ctx, o.Packages, r.Imported)
		switch {
		case err != nil:
			return nil, nil, err
		case !j.matches(r.Imported, set):
			j.Entries, j.Rules = maps.Clone(set.Entries), nil // the files have passed
			continue
		case len(r.Problems) > 0:
			return nil, j.checked(r.Problems), nil
		case set.Dir == "" && len(r.Imported) > 0:
			return nil, nil, errors.New("bundle: esbuild ignored the problems of packages")
		}
		return j.program(r, set), nil, nil
	}
	return nil, nil, fmt.Errorf("bundle: the packages in %s keep changing", o.Packages.folder)
}

// maxImported bounds the specifiers in a reply: packages beyond maxImports are problems anyway.
const maxImported = 1000

// set returns the set of the packages that the last run imports.
func (j *Job) set(ctx context.Context, p *Packages, imported []string) (*set, error) {
	if p == nil || len(imported) == 0 {
		return &set{}, nil
	}
	list := slices.DeleteFunc(slices.Clone(imported[:min(len(imported), maxImported)]), func(s string) bool { return !validSpecifier(s) })
	slices.Sort(list)
	return p.set(ctx, slices.Compact(list))
}

// matches reports whether the last run used the packages of the set.
func (j *Job) matches(imported []string, s *set) bool {
	if !j.Packages {
		return true
	}
	return !slices.ContainsFunc(imported, func(specifier string) bool {
		used, ok := j.Entries[specifier]
		return !ok || !reflect.DeepEqual(used, s.Entries[specifier])
	})
}

// checked bounds the problems, which another process has reported. It is not trusted.
func (j *Job) checked(list []Problem) []Problem {
	list = list[:min(len(list), maxProblems)]
	for i, p := range list {
		if !slices.ContainsFunc(j.Files, func(f File) bool { return f.Path == p.Path }) {
			p.Path, p.Line, p.Column = EntryPath, 1, 1
		}
		p.Line, p.Column = max(p.Line, 1), max(p.Column, 1)
		p.Rule, p.Message = snippet.Shorten(p.Rule, maxText), snippet.Shorten(p.Message, maxMessage)
		list[i] = p
	}
	return list
}

// program returns the result of the last run.
func (j *Job) program(r Built, s *set) *Program {
	code := strings.ReplaceAll(string(r.Code), j.Mount+"/"+placeholder, j.Mount+"/"+s.Dir)
	p := &Program{Code: code, Packages: map[string]string{}, files: make(map[string]File, len(j.Files))}
	p.sources = sync.OnceValues(func() (*snippet.SourceMap, error) { return snippet.ParseSourceMap(r.SourceMap) })
	for specifier, e := range s.Entries {
		p.Packages[path.Join(j.Mount, s.Dir, e.File)] = specifier
	}
	for _, f := range j.Files {
		p.files[path.Clean(f.Path)] = f
	}
	return p
}

// An Entry is the module of a set for one specifier.
type Entry struct {
	File  string   `json:"file"`            // in the set's folder
	Names []string `json:"names,omitempty"` // the exports, sorted

	// Dynamic: a module in CommonJS whose names are unknown. File exports its exports object
	// as default.
	Dynamic bool `json:"dynamic,omitempty"`

	// Problem is the reason why the package cannot be imported, or empty.
	Problem string `json:"problem,omitempty"`
}

// stub returns a module for esbuild that re-exports the entry in a folder. Of an unknown or
// dynamic module, any name may be imported.
func (e Entry) stub(folder string) string {
	file := strconv.Quote(folder + e.File)
	if e.Dynamic || e.File == "" {
		return fmt.Sprintf("import m from %s; module.exports = m", file)
	}
	list := make([]string, len(e.Names))
	for i, name := range e.Names {
		list[i] = snippet.Quote(name)
	}
	return fmt.Sprintf("export {%s} from %s", strings.Join(list, ","), file)
}

// wrapper returns a module that exports the given names of the exports object of a module
// in CommonJS. As in Node, later changes of the values are not seen. default is the
// exports object or, if that was an ES module before, its default: as in bundlers.
func wrapper(file string, names []string) string {
	var values, exports strings.Builder
	whole := "m"
	for i, name := range names {
		fmt.Fprintf(&values, "const v%d = get(%s);\n", i, snippet.Quote(name))
		switch name {
		case "default":
			if slices.Contains(names, "__esModule") {
				whole = fmt.Sprintf("v%d", i)
			}
			continue
		case "__esModule":
			continue
		}
		fmt.Fprintf(&exports, "v%d as %s, ", i, snippet.Quote(name))
	}
	return fmt.Sprintf("import m from %s;\nconst get = (name) => { try { return m[name]; } catch {} };\n%sexport { %s%s as default };\n",
		strconv.Quote("./"+file), values.String(), exports.String(), whole)
}

// wrapped returns the names that the wrapper exports.
func wrapped(names []string) []string {
	list := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "default" || name == "__esModule" })
	list = append(list, "default")
	slices.Sort(list)
	return list
}
