package bundle

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
)

// nsNamespace is the namespace of modules whose default export is an object with the exports
// of another module. They replace modules that export * from CommonJS or from Node: esbuild
// finds those names only when it runs.
const nsNamespace = "namespace"

var exportStar = lazyregexp.New(`\bexport\s*\*\s*from\s*["']([^"'\n]+)["']`)

// namespaceModule returns such a module. Like a module in CommonJS that was an ES module
// before, its object has a property __esModule.
func namespaceModule(specifier string) string {
	return fmt.Sprintf(`import * as exports from %s;
const m = Object.defineProperty({}, "__esModule", { value: true });
for (const name of Object.keys(exports)) Object.defineProperty(m, name, { enumerable: true, get: () => exports[name] });
export default m;
`, quoteJS(specifier))
}

func (p *Packages) loadNamespace(a api.OnLoadArgs) (api.OnLoadResult, error) {
	source := namespaceModule(a.Path)
	return api.OnLoadResult{Contents: &source, ResolveDir: p.folder, Loader: api.LoaderJS}, nil
}

// unknownNames returns the specifiers of ES modules that export names that esbuild does not
// know.
func (b *built) unknownNames(specifiers []string) map[string]bool {
	list := make(map[string]bool)
	for _, specifier := range specifiers {
		entry := b.meta.Outputs[outputs+"/"+fileOf(specifier)].EntryPoint
		if b.meta.Inputs[entry].Format == "esm" && b.exportsUnknown(entry, make(map[string]bool)) {
			list[specifier] = true
		}
	}
	return list
}

// exportsUnknown reports whether a module has an export * that leads to another module than
// an ES module of the packages.
func (b *built) exportsUnknown(module string, seen map[string]bool) bool {
	seen[module] = true
	text, err := os.ReadFile(filepath.Join(b.folder, module))
	if err != nil {
		return false
	}
	stars := make(map[string]bool)
	for _, m := range exportStar().FindAllSubmatch(text, -1) {
		stars[string(m[1])] = true
	}
	for _, i := range b.meta.Inputs[module].Imports {
		switch {
		case i.External && stars[i.Path], stars[i.Original] && b.meta.Inputs[i.Path].Format == "cjs":
			return true
		case stars[i.Original] && !i.External && !seen[i.Path] && b.exportsUnknown(i.Path, seen):
			return true
		}
	}
	return false
}
