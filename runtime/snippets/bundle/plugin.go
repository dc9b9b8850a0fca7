package bundle

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

// The namespaces of modules in esbuild.
const (
	nsFile    = "snippet"
	nsPackage = "package" // a module that re-exports the package's module of a set
)

// setUp makes esbuild read the files of the snippet only.
func (b *build) setUp(p api.PluginBuild) {
	p.OnResolve(api.OnResolveOptions{Filter: everything}, b.resolve)
	p.OnLoad(api.OnLoadOptions{Filter: everything, Namespace: nsFile}, b.loadFile)
	p.OnLoad(api.OnLoadOptions{Filter: everything, Namespace: nsPackage}, b.loadPackage)
	p.OnLoad(api.OnLoadOptions{Filter: everything}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		return api.OnLoadResult{}, fmt.Errorf("cannot read %q", a.Path)
	})
}

// resolve finds the module of an import.
func (b *build) resolve(a api.OnResolveArgs) (api.OnResolveResult, error) {
	switch {
	case a.Kind == api.ResolveEntryPoint:
		return api.OnResolveResult{Path: EntryPath, Namespace: nsFile}, nil
	case a.Namespace == nsPackage:
		return api.OnResolveResult{Path: a.Path, External: true}, nil
	case isRelative(a.Path):
		name, ok := b.find(path.Join(path.Dir(a.Importer), a.Path), strings.HasSuffix(a.Path, "/"))
		if !ok {
			return failed("cannot find %q", a.Path)
		}
		return api.OnResolveResult{Path: name, Namespace: nsFile}, nil
	case strings.HasPrefix(a.Path, "node:"):
		return api.OnResolveResult{Path: a.Path, External: true}, nil
	case slices.Contains(builtins, a.Path):
		return api.OnResolveResult{Path: "node:" + a.Path, External: true}, nil
	case !validSpecifier(a.Path):
		return failed("cannot import %q: use a relative path, a package or a module of Node", a.Path)
	}
	return b.resolvePackage(a)
}

func failed(format, name string) (api.OnResolveResult, error) {
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf(format, snippet.Shorten(name, maxText))}}}, nil
}

// resolvePackage finds the module of a package.
func (b *build) resolvePackage(a api.OnResolveArgs) (api.OnResolveResult, error) {
	e, known := b.entry(a.Path)
	switch {
	case !b.Packages:
		return failed(notFound, a.Path)
	case known && e.Problem != "":
		return api.OnResolveResult{Errors: []api.Message{{Text: e.Problem}}}, nil
	}
	return api.OnResolveResult{Path: a.Path, Namespace: nsPackage}, nil
}

// entry records that the snippet imports a package, and returns its entry, if it is known.
func (b *build) entry(specifier string) (e Entry, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.imported[specifier] = true
	e, known = b.Entries[specifier]
	return e, known
}

func (b *build) loadFile(a api.OnLoadArgs) (api.OnLoadResult, error) {
	f := b.files[a.Path]
	ext := b.languages[a.Path]
	loader := snippet.Loaders[ext]
	if ext == ".json" {
		loader = api.LoaderJSON
	}
	if loader == api.LoaderNone {
		return api.OnLoadResult{}, fmt.Errorf("the extension of %q is not supported", a.Path)
	}
	source := strings.TrimPrefix(f.Source, "\ufeff") // before a shebang it is invalid
	if strings.Contains(source, "sourceMappingURL=") {
		source = sourceMapComments().ReplaceAllString(source, "${1}Url=")
	}
	return api.OnLoadResult{Contents: &source, Loader: loader}, nil
}

// loadPackage returns a module that re-exports the package's module of a set.
func (b *build) loadPackage(a api.OnLoadArgs) (api.OnLoadResult, error) {
	e, _ := b.entry(a.Path)
	return api.OnLoadResult{Contents: new(e.stub(b.Mount + "/" + placeholder + "/")), Loader: api.LoaderJS}, nil
}

// everything is esbuild's filter for all paths, also empty ones.
const everything = "^"

// nsNamespace is the namespace of modules whose default export is an object with the exports
// of another module. They replace modules that export * from CommonJS or from Node: esbuild
// finds those names only when it runs.
const nsNamespace = "namespace"

// reExports matches what esbuild prints for such an export *.
var reExports = lazyregexp.New(`(?m)^export \* from |\b__reExport\d*\(`)

// loadNamespace returns a namespace module. Its object has a property __esModule, like an ES
// module that was compiled to CommonJS.
func (p *Packages) loadNamespace(a api.OnLoadArgs) (api.OnLoadResult, error) {
	source := fmt.Sprintf(`import * as exports from %s;
const m = Object.defineProperty({}, "__esModule", { value: true });
for (const name of Object.keys(exports)) Object.defineProperty(m, name, { enumerable: true, get: () => exports[name] });
export default m;
`, snippet.Quote(a.Path))
	return api.OnLoadResult{Contents: &source, ResolveDir: p.folder, Loader: api.LoaderJS}, nil
}

// unknownNames returns the specifiers of ES modules with exports unknown to esbuild.
func (b *built) unknownNames(specifiers []string) map[string]bool {
	list := make(map[string]bool)
	for _, specifier := range specifiers {
		out := b.meta.Outputs[outputs+"/"+fileOf(specifier)]
		parts := []string{fileOf(specifier)}
		for _, i := range out.Imports {
			parts = append(parts, filepath.Base(i.Path)) // the module itself, if others import it
		}
		exports := func(name string) bool { return reExports().Match(b.files[name]) }
		if b.meta.Inputs[out.EntryPoint].Format == "esm" && slices.ContainsFunc(parts, exports) {
			list[specifier] = true
		}
	}
	return list
}
