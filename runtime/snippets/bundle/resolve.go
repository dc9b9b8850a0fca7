package bundle

import (
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
)

// loaders are esbuild's loaders by extension.
var loaders = map[string]api.Loader{
	".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX,
	".js": api.LoaderJS, ".mjs": api.LoaderJS, ".cjs": api.LoaderJS, ".jsx": api.LoaderJSX,
	".json": api.LoaderJSON,
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

// find returns the file that a clean path means. A folder is its index.
func (b *build) find(name string, folder bool) (string, bool) {
	if !folder {
		ext := path.Ext(name)
		for _, source := range sources[ext] {
			if b.has(strings.TrimSuffix(name, ext) + source) {
				return strings.TrimSuffix(name, ext) + source, true
			}
		}
		if b.has(name) {
			return name, true
		}
		if found, ok := b.findImplied(name); ok {
			return found, true
		}
	}
	return b.findImplied(path.Join(name, "index"))
}

func (b *build) findImplied(name string) (string, bool) {
	for _, ext := range implied {
		if b.has(name + ext) {
			return name + ext, true
		}
	}
	return "", false
}

func (b *build) has(name string) bool {
	_, ok := b.files[name]
	return ok
}

// specifiers are names of packages with an optional path in them.
var specifiers = lazyregexp.New(`^(@[\w.~-]+/)?[\w~-][\w.~-]*(/[\w.~+@-]+)*$`)

const maxSpecifier = 200

func validSpecifier(text string) bool {
	return len(text) <= maxSpecifier && specifiers().MatchString(text) && path.Clean(text) == text
}

// packageOf returns the package's name of a specifier.
func packageOf(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}
