package examplecheck

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/runtime/snippets"
)

// mainFile is the file that a snippet runs.
const mainFile = "src/main.ts"

// openFlags keep a file that is replaced while it is found from blocking, or from being a link.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

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

// setMain makes text the file that runs. src/main.ts cannot contain JSX, so that text with the
// extension .jsx or .tsx becomes a separate file, whose exports src/main.ts re-exports.
func (e *Example) setMain(ext, text string, s source) {
	name := mainFile
	if ext == ".jsx" || ext == ".tsx" {
		name = jsxFile
		e.Files = append(e.Files, snippets.File{Path: mainFile, Source: passOn})
	}
	e.Files = append(e.Files, snippets.File{Path: name, Source: text})
	if e.sources == nil {
		e.sources = map[string]source{}
	}
	e.sources[name] = s
}

// jsxFile is the file for JSX, and passOn src/main.ts beside it.
const jsxFile = "src/example.tsx"

const passOn = `export * from "./example.js";
`
