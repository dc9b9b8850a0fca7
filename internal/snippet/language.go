package snippet

import (
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// Language returns the extension of a file's language: the extension of its name, or .tsx for a
// .ts file that is valid only as TSX. Linter and bundler use it, so that they read the same program.
func Language(name, code string) string {
	ext := path.Ext(name)
	if ext == ".ts" && mayHaveJSX(code) && !parses(ext, code) && parses(".tsx", code) {
		return ".tsx"
	}
	return ext
}

// mayHaveJSX reports whether code contains the end of a tag. Most files don't, and are not parsed
// twice.
func mayHaveJSX(code string) bool {
	return strings.Contains(code, "/>") || strings.Contains(code, "</")
}

// parses reports whether [Strip] accepts a file in a language.
func parses(ext, code string) bool {
	d, c := newDraft(code), compiler{file: "file" + ext}
	if d.checkFile(hasJSX(ext)) != nil {
		return false
	}
	return len(c.transform(d, api.TransformOptions{Loader: loaders[ext]}).Errors) == 0
}

func hasJSX(ext string) bool { return ext == ".tsx" || ext == ".jsx" }
