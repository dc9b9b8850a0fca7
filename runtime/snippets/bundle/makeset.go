package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

// outputs is the folder of esbuild's results, relative to the folder of the packages. It is never
// written.
const outputs = ".gaol-outputs"

// make makes a set, without a folder if a package cannot be bundled.
func (p *Packages) make(ctx context.Context, key string, specifiers []string) (*set, error) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.maxBuildTime)
	defer cancel()
	built, failures, err := p.esbuild(ctx, specifiers, nil)
	if built != nil {
		if unknown := built.unknownNames(specifiers); len(unknown) > 0 {
			built, failures, err = p.esbuild(ctx, specifiers, unknown)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case len(failures) > 0:
		return p.makeBroken(ctx, specifiers, failures)
	}
	s := &set{Entries: built.entries(specifiers), Files: p.stamps(built, specifiers, start), checked: start}
	for _, e := range s.Entries {
		if e.Problem != "" {
			return s, nil
		}
	}
	if err := p.save(ctx, key, built, s); err != nil {
		return nil, fmt.Errorf("bundle: packages: %w", err)
	}
	return s, nil
}

// save writes a set to the cache.
func (p *Packages) save(ctx context.Context, key string, built *built, s *set) error {
	folder, err := p.cache.create()
	if err == nil {
		err = writeFiles(folder, built.files)
	}
	if err == nil {
		err = p.wrap(ctx, folder, built, s)
	}
	if err == nil {
		err = p.cache.publish(key, folder, built.files, s)
	}
	if err != nil {
		_ = os.RemoveAll(folder)
	}
	return err
}

// makeBroken bundles the packages one by one, to find those with problems.
func (p *Packages) makeBroken(ctx context.Context, specifiers []string, failures []api.Message) (*set, error) {
	s := &set{Entries: make(map[string]Entry), checked: time.Now()}
	for _, specifier := range specifiers {
		if len(specifiers) > 1 {
			var err error
			if _, failures, err = p.esbuild(ctx, []string{specifier}, nil); err != nil {
				return nil, err
			}
		}
		e := Entry{}
		if len(failures) > 0 {
			e.Problem = packageProblem(specifier, failures[0])
		}
		s.Entries[specifier] = e
	}
	return s, nil
}

var unresolved = lazyregexp.New(`^Could not resolve "(.*)"$`)

// packageProblem returns the reason why a package cannot be bundled.
func packageProblem(specifier string, m api.Message) string {
	by := ""
	if m.Location != nil && m.Location.File != "" {
		by = fmt.Sprintf(", which %s imports", m.Location.File)
	}
	if name := unresolved().FindStringSubmatch(m.Text); name != nil {
		return snippet.Shorten(fmt.Sprintf(notFound, name[1])+by, maxText)
	}
	if m.Location != nil {
		by = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
	}
	return snippet.Shorten(fmt.Sprintf("package %q: %s%s", specifier, by, m.Text), maxText)
}

// wrap adds modules that export the names of modules in CommonJS.
func (p *Packages) wrap(ctx context.Context, folder string, built *built, s *set) error {
	if p.names == nil {
		return nil
	}
	for specifier, e := range s.Entries {
		if !e.Dynamic {
			continue
		}
		names, err := p.names(ctx, filepath.Base(folder)+"/"+e.File)
		if err != nil {
			return err
		}
		if names == nil {
			continue
		}
		names = checkedNames(names)
		e = Entry{File: "names-" + e.File, Names: wrapped(names)}
		content := map[string][]byte{e.File: []byte(wrapper(s.Entries[specifier].File, names))}
		if err := writeFiles(folder, content); err != nil {
			return err
		}
		maps.Copy(built.files, content)
		s.Entries[specifier] = e
	}
	return nil
}

// built is esbuild's result for packages.
type built struct {
	namespaces map[string]bool   // the specifiers of namespace modules
	files      map[string][]byte // by name
	meta       metafile
}

// metafile is a part of esbuild's description of a build. Paths are relative to the folder of
// the packages.
type metafile struct {
	Inputs map[string]struct {
		Format  string `json:"format"`
		Imports []struct {
			Path     string `json:"path"`
			External bool   `json:"external"`
		} `json:"imports"`
	} `json:"inputs"`
	Outputs map[string]struct {
		Exports    []string `json:"exports"`
		EntryPoint string   `json:"entryPoint"`
		Imports    []struct {
			Path string `json:"path"`
		} `json:"imports"`
	} `json:"outputs"`
}

// Await calls f on a goroutine, and returns the cause of ctx once that is done: f is then abandoned, because esbuild
// cannot be stopped. f's results may be read if there is no error.
func Await(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// esbuild bundles packages, as namespace modules if namespaces contains their specifier.
// failures are errors in them.
func (p *Packages) esbuild(ctx context.Context, specifiers []string, namespaces map[string]bool) (b *built, failures []api.Message, err error) {
	var r api.BuildResult
	if err := Await(ctx, func() { r = api.Build(p.options(specifiers, namespaces)) }); err != nil {
		return nil, nil, fmt.Errorf("bundle: packages: %w", err)
	}
	if len(r.Errors) > 0 {
		return nil, r.Errors, nil
	}
	b = &built{namespaces: namespaces, files: make(map[string][]byte)}
	if err := json.Unmarshal([]byte(r.Metafile), &b.meta); err != nil {
		return nil, nil, fmt.Errorf("bundle: packages: %w", err)
	}
	for _, f := range r.OutputFiles {
		b.files[filepath.Base(f.Path)] = withCommonJS(f.Contents)
	}
	return b, nil, nil
}

// options are esbuild's options for packages.
func (p *Packages) options(specifiers []string, namespaces map[string]bool) api.BuildOptions {
	// Entry points are not named by specifier: esbuild would prefer a file of that name to the package.
	bySource := make(map[string]string)
	var entries []api.EntryPoint
	for i, specifier := range specifiers {
		name := fmt.Sprintf("%s/%d", outputs, i)
		bySource[name] = specifier
		entries = append(entries, api.EntryPoint{InputPath: name, OutputPath: strings.TrimSuffix(fileOf(specifier), ".js")})
	}
	return api.BuildOptions{
		EntryPointsAdvanced: entries,
		Plugins:             []api.Plugin{{Name: "packages", Setup: func(b api.PluginBuild) { p.setUp(b, bySource, namespaces) }}},
		NodePaths:           []string{p.folder}, // for a folder with another name than node_modules
		Bundle:              true,
		Splitting:           true,
		Format:              api.FormatESModule,
		Platform:            api.PlatformNode,
		Target:              api.ESNext,
		Loader:              map[string]api.Loader{".css": api.LoaderEmpty},
		Define:              map[string]string{"process.env.NODE_ENV": "undefined"}, // as in the sandbox
		TsconfigRaw:         "{}",
		Charset:             api.CharsetUTF8,
		LegalComments:       api.LegalCommentsNone,
		LogLevel:            api.LogLevelSilent,
		Metafile:            true,
		AbsWorkingDir:       p.folder,
		Outdir:              filepath.Join(p.folder, outputs),
		ChunkNames:          "shared-[hash]",
	}
}

// setUp makes esbuild resolve entry points as imports of packages.
func (p *Packages) setUp(b api.PluginBuild, specifiers map[string]string, namespaces map[string]bool) {
	b.OnLoad(api.OnLoadOptions{Filter: everything, Namespace: nsNamespace}, p.loadNamespace)
	b.OnResolve(api.OnResolveOptions{Filter: everything}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		if a.Kind != api.ResolveEntryPoint {
			return api.OnResolveResult{}, nil
		}
		if specifier := specifiers[a.Path]; namespaces[specifier] {
			return api.OnResolveResult{Path: specifier, Namespace: nsNamespace}, nil
		}
		r := b.Resolve(specifiers[a.Path], api.ResolveOptions{ResolveDir: p.folder, Kind: api.ResolveJSImportStatement})
		if len(r.Errors) > 0 {
			return api.OnResolveResult{Errors: r.Errors}, nil
		}
		if r.External || r.Namespace != "file" {
			return api.OnResolveResult{}, errors.New("this is not a file")
		}
		return api.OnResolveResult{Path: r.Path}, nil
	})
}

var notInNames = lazyregexp.New(`[^\w.-]+`)

// fileOf returns the name of the module for a specifier.
func fileOf(specifier string) string {
	hash := sha256.Sum256([]byte(specifier))
	readable := strings.Trim(notInNames().ReplaceAllString(specifier, "-"), "-.")
	return readable[:min(len(readable), 80)] + "-" + hex.EncodeToString(hash[:4]) + ".js"
}

// entries returns the entries of the specifiers.
func (b *built) entries(specifiers []string) map[string]Entry {
	list := make(map[string]Entry)
	for _, specifier := range specifiers {
		file := fileOf(specifier)
		out := b.meta.Outputs[outputs+"/"+file]
		e := Entry{File: file, Names: slices.Sorted(slices.Values(out.Exports))}
		switch {
		case b.escapes(out.EntryPoint):
			e = Entry{Problem: fmt.Sprintf(notFound, specifier) + ": it has files outside their folder"}
		case b.meta.Inputs[out.EntryPoint].Format == "cjs", b.namespaces[specifier]:
			e = Entry{File: file, Dynamic: true}
		}
		list[specifier] = e
	}
	return list
}

// escapes reports whether a module or its imports are files outside the folder.
func (b *built) escapes(module string) bool {
	seen := map[string]bool{module: true}
	for todo := []string{module}; len(todo) > 0; {
		m := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !filepath.IsLocal(m) {
			return true
		}
		for _, i := range b.meta.Inputs[m].Imports {
			if !i.External && !seen[i.Path] {
				seen[i.Path] = true
				todo = append(todo, i.Path)
			}
		}
	}
	return false
}

// stamps returns the stamps of the bundled files, and of files that package managers change when
// they install another version.
func (p *Packages) stamps(b *built, specifiers []string, start time.Time) map[string]stamp {
	files := make(map[string]stamp)
	add := func(name string) {
		if _, ok := files[name]; !ok {
			s := stampOf(name)
			s.Invalid = s.Ctime >= start.UnixNano()
			files[name] = s
		}
	}
	for input := range b.meta.Inputs {
		name := filepath.Join(p.folder, input)
		add(name)
		for dir := filepath.Dir(name); len(dir) > len(p.folder); dir = filepath.Dir(dir) {
			if manifest := filepath.Join(dir, "package.json"); stampOf(manifest).Inode != 0 {
				add(manifest)
				break
			}
		}
	}
	for _, root := range p.roots() {
		for _, name := range []string{".", ".package-lock.json", ".modules.yaml", ".pnpm/lock.yaml", ".yarn-integrity", ".yarn-state.yml"} {
			add(filepath.Join(root, name))
		}
		for _, specifier := range specifiers {
			add(filepath.Join(root, snippet.PackageOf(specifier))) // may be a symbolic link
		}
	}
	return files
}

// commonJS defines the variables of modules in CommonJS that ES modules lack.
const commonJS = `import { createRequire as __createRequire } from "node:module"; import { fileURLToPath as __fileURLToPath } from "node:url"; ` +
	`var require = __createRequire(import.meta.url), __filename = __fileURLToPath(import.meta.url), __dirname = __fileURLToPath(new URL(".", import.meta.url)).slice(0, -1);` + "\n"

// withCommonJS prepends commonJS to code that may use its variables.
func withCommonJS(code []byte) []byte {
	for _, name := range []string{"typeof require", "__filename", "__dirname"} {
		if bytes.Contains(code, []byte(name)) {
			return append([]byte(commonJS), code...)
		}
	}
	return code
}
