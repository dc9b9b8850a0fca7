package bundle

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

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

// sources are the extensions of the files that a path with the extension of JavaScript may
// mean, as in TypeScript.
var sources = map[string][]string{
	".js":  {".ts", ".tsx", ".js", ".jsx"},
	".jsx": {".tsx", ".jsx"},
	".mjs": {".mts", ".mjs"},
	".cjs": {".cts", ".cjs"},
}

// implied are the extensions that a path may omit.
var implied = []string{".ts", ".tsx", ".js", ".jsx", ".mts", ".mjs", ".cts", ".cjs", ".json"}

func isRelative(specifier string) bool {
	return specifier == "." || specifier == ".." || strings.HasPrefix(specifier, "./") || strings.HasPrefix(specifier, "../")
}

// find returns the file of a clean path. A folder means its index.
func (b *build) find(name string, folder bool) (string, bool) {
	var list []string
	if !folder {
		base, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
		for _, source := range sources[ext] {
			list = append(list, base+source)
		}
		list = append(list, name)
		for _, ext := range implied {
			list = append(list, name+ext)
		}
	}
	for _, ext := range implied {
		list = append(list, path.Join(name, "index")+ext)
	}
	for _, name := range list {
		if _, ok := b.files[name]; ok {
			return name, true
		}
	}
	return "", false
}

// specifiers are names of packages with an optional path in them.
var specifiers = lazyregexp.New(`^(@[\w.~-]+/)?[\w~-][\w.~-]*(/[\w.~+@-]+)*$`)

const maxSpecifier = 200

func validSpecifier(text string) bool {
	return len(text) <= maxSpecifier && specifiers().MatchString(text) && path.Clean(text) == text
}

// builtins are Node's modules that need no node: before their name.
var builtins = strings.Fields(`assert assert/strict async_hooks buffer child_process cluster console constants
	crypto dgram diagnostics_channel dns dns/promises domain events fs fs/promises http http2 https inspector
	inspector/promises module net os path path/posix path/win32 perf_hooks process punycode querystring readline
	readline/promises repl stream stream/consumers stream/promises stream/web string_decoder sys timers
	timers/promises tls trace_events tty url util util/types v8 vm wasi worker_threads zlib`)

const (
	maxNames = 10_000
	// maxNameLength is in bytes; longer names cannot be imported.
	maxNameLength = 256
)

// NamesProgram returns an ES module that passes to globalThis.__return the names of the
// exports object of a module in CommonJS. It is for [PackagesOptions].Names. path is the
// module's path in the sandbox.
func NamesProgram(path string) string {
	return "import m from " + snippet.Quote(path) + `;
const names = new Set();
const isObject = (v) => v !== null && (typeof v === 'object' || typeof v === 'function');
const builtin = [Object.prototype, Function.prototype, Array.prototype];
for (let o = m; isObject(o) && !builtin.includes(o) && names.size < ` + "10000" + `; o = Object.getPrototypeOf(o)) {
  for (const name of Object.getOwnPropertyNames(o)) names.add(name);
}
names.delete('constructor');
if (typeof m === 'function') for (const name of ['length', 'name', 'prototype', 'arguments', 'caller']) names.delete(name);
globalThis.__return([...names]);
`
}

// checkedNames returns the names that a module can export, sorted.
func checkedNames(names []string) []string {
	list := slices.DeleteFunc(names, func(name string) bool {
		return name == "" || len(name) > maxNameLength || !utf8.ValidString(name)
	})
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxNames)]
}
