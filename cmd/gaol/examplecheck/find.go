package examplecheck

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
)

// Limits of what Find reads.
const (
	maxCode     = 200_000   // bytes of a code file, as of a snippet
	maxMarkdown = 4 << 20   // bytes of a page
	maxTotal    = 256 << 20 // bytes of all files, each with perFile more
	perFile     = 4 << 10
)

// mainFile is the file that a snippet runs.
const mainFile = "src/main.ts"

// fileKind is the kind of a file's content, by its extension.
type fileKind int

const (
	kindOther fileKind = iota
	kindCode
	kindMarkdown
	kindMDX
)

// codeEndings are the extensions of code files, which are examples.
var codeEndings = []string{".ts", ".tsx", ".js", ".jsx", ".mjs"}

func kind(p string) fileKind {
	switch ext := path.Ext(p); {
	case slices.Contains(codeEndings, ext) && !strings.HasSuffix(p, ".d.ts"):
		return kindCode
	case ext == ".md":
		return kindMarkdown
	case ext == ".mdx":
		return kindMDX
	}
	return kindOther
}

// Set is what Find has found. Its folders stay open until Close.
type Set struct {
	Examples []*Example

	allFences bool
	folders   []*folder
	bytes     int64
}

// Find returns the examples of files and folders, in the order of the paths and then of names.
// In folders, it skips node_modules and names that begin with a dot, and follows no symbolic
// links. With allFences, it takes all fences of TypeScript and JavaScript, and not only fences marked with run.
func Find(ctx context.Context, paths []string, allFences bool) (*Set, error) {
	s := &Set{allFences: allFences}
	for _, p := range paths {
		if err := s.add(ctx, p); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// Close closes the folders of the set.
func (s *Set) Close() {
	for _, f := range s.folders {
		_ = f.root.Close()
	}
}

func (s *Set) add(ctx context.Context, p string) error {
	f, name, err := s.open(p)
	switch {
	case err != nil:
		return err
	case name == "":
		return s.walk(ctx, f)
	case kind(name) == kindOther:
		return fmt.Errorf("%s: want a folder, or a file that ends in %s", p, strings.Join(slices.Concat(codeEndings, []string{".md", ".mdx"}), ", "))
	}
	return s.addFile(f, name)
}

// open opens a folder, or the folder of a file, whose name it returns.
func (s *Set) open(p string) (f *folder, name string, err error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, "", err
	}
	if !info.IsDir() {
		if p, err = filepath.EvalSymlinks(p); err != nil { //nolint:forbidigo // the path that the user named
			return nil, "", err
		}
		p, name = filepath.Dir(p), filepath.Base(p)
	}
	root, err := os.OpenRoot(p)
	if err != nil {
		return nil, "", err
	}
	f = &folder{root, p}
	s.folders = append(s.folders, f)
	return f, name, nil
}

// walk adds the examples of a folder. Code files of a folder with src/main.ts are parts of that
// example.
func (s *Set) walk(ctx context.Context, f *folder) error {
	var project string // the last folder with src/main.ts
	inProject := func(p string) bool { return project == "." || strings.HasPrefix(p, project+"/") }
	return fs.WalkDir(f.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		switch err = cmp.Or(err, context.Cause(ctx)); {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() && (project == "" || !inProject(p)) && isRegular(f, path.Join(p, mainFile)):
			project = p
			return s.addProject(f, p)
		case !d.Type().IsRegular() || kind(p) == kindOther || kind(p) == kindCode && project != "" && inProject(p):
			return nil
		}
		return s.addFile(f, p)
	})
}

func isRegular(f *folder, p string) bool {
	info, err := f.root.Lstat(p)
	return err == nil && info.Mode().IsRegular()
}

func (s *Set) addFile(f *folder, p string) error {
	limit := int64(maxCode)
	if kind(p) != kindCode {
		limit = maxMarkdown
	}
	text, fault, err := s.read(f, p, limit)
	e := newExample(f, p, 1)
	e.Fault = fault
	switch {
	case err != nil:
		return err
	case fault != "":
	case kind(p) == kindCode:
		e.add(mainFile, text, source{file: e.File})
	default:
		s.Examples = append(s.Examples, pageExamples(page{f, p, []byte(text), kind(p) == kindMDX}, s.allFences)...)
		return nil
	}
	s.Examples = append(s.Examples, e)
	return nil
}

// addProject adds the folder p, which has src/main.ts.
func (s *Set) addProject(f *folder, p string) error {
	e := newExample(f, path.Join(p, mainFile), 1)
	s.Examples = append(s.Examples, e)
	return fs.WalkDir(f.root.FS(), path.Join(p, "src"), func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.Type().IsRegular() || kind(file) != kindCode && path.Ext(file) != ".json" || strings.HasSuffix(file, expectedEnding):
			return nil
		}
		text, fault, err := s.read(f, file, maxCode)
		e.Fault = cmp.Or(e.Fault, fault)
		name, relErr := filepath.Rel(p, file)
		e.add(name, text, source{file: f.shown(file)})
		return cmp.Or(err, relErr)
	})
}

// read reads a file. It returns a fault if the file is too large. The file may have been replaced
// since its folder was read, so that its type is checked again.
func (s *Set) read(f *folder, p string, limit int64) (text, fault string, err error) {
	b, err := readRegular(f.root, p, limit)
	s.bytes += int64(len(b)) + perFile
	switch {
	case errors.Is(err, errTooLarge):
		return "", fmt.Sprintf("%s has more than %d bytes", f.shown(p), limit), nil
	case err != nil:
		return "", "", fmt.Errorf("read %s: %w", f.shown(p), report.WithoutPath(err))
	case s.bytes > maxTotal:
		return "", "", fmt.Errorf("the examples have more than %d bytes, or too many files: check fewer together", maxTotal)
	}
	return string(b), "", nil
}

var errTooLarge = errors.New("file too large")

// readRegular reads a regular file of at most limit bytes.
func readRegular(root *os.Root, p string, limit int64) ([]byte, error) {
	file, err := root.OpenFile(p, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a file that has been replaced does not block, and is not a link
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errors.New("not a regular file"))
	}
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, errTooLarge
	}
	return b, err
}

// Open returns the example that a code file or a folder with src/main.ts is.
func Open(p string) (*Example, error) {
	s := &Set{}
	defer s.Close()
	f, name, err := s.open(p)
	switch {
	case err != nil:
	case name == "" && isRegular(f, mainFile):
		err = s.addProject(f, ".")
	case name == "":
		err = fmt.Errorf("%s: file %s is missing", p, mainFile)
	case kind(name) != kindCode:
		err = fmt.Errorf("%s: want a folder with %s, or a file that ends in %s", p, mainFile, strings.Join(codeEndings, ", "))
	default:
		err = s.addFile(f, name)
	}
	if err != nil {
		return nil, err
	}
	return s.Examples[0], nil
}

// GitHub returns an annotation for each error, as commands of GitHub's runner. Files below
// workspace are named by their paths in it, as GitHub needs.
func (r *Report) GitHub(workspace string) string {
	var b strings.Builder
	for _, result := range r.Results {
		for _, m := range result.Errors {
			fmt.Fprintf(&b, "::error file=%s,line=%d", githubProperty.Replace(inWorkspace(m.File, workspace)), m.Line)
			if m.Column > 0 {
				fmt.Fprintf(&b, ",col=%d", m.Column)
			}
			text := m.Text
			if result.Diff != "" {
				text += "\n" + result.Diff
			}
			fmt.Fprintf(&b, ",title=%s::%s\n", githubProperty.Replace(title(result)), githubData.Replace(text))
		}
	}
	return b.String()
}

// WithoutCommands returns text that GitHub's runner prints and does not interpret: examples may
// have printed its commands.
func WithoutCommands(text string) string {
	token := rand.Text()
	return "::stop-commands::" + token + "\n" + text + "::" + token + "::\n"
}

// The runner's own escapes: of a command's text, and of its properties.
var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func title(r *Result) string {
	if r.Name == "" {
		return "Example failed"
	}
	return "Example " + r.Name + " failed"
}

func inWorkspace(file, workspace string) string {
	absolute, err := filepath.Abs(file)
	rel, outside := filepath.Rel(workspace, absolute) // an empty workspace contains no absolute path
	if cmp.Or(err, outside) != nil || !filepath.IsLocal(rel) {
		return file
	}
	return rel
}
