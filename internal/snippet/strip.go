package snippet

import (
	"fmt"
	"path"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"gaol/internal/lazyregexp"
)

// Stripped is a file as plain JavaScript.
type Stripped struct {
	Code string // as esbuild prints it

	ext string // of its language
	translation
}

// Strip removes the types of a TypeScript file, and translates JSX, enums, namespaces and
// decorators, which JavaScript lacks. The extension of its name selects the language. A .ts file that is valid only
// as TSX is read as TSX.
func Strip(name, code string) (*Stripped, *SyntaxError) {
	ext := path.Ext(name)
	s, err := strip(ext, code)
	if err != nil && mayBeTSX(ext, code) {
		if tsx, err := strip(".tsx", code); err == nil {
			return tsx, nil
		}
	}
	return s, err
}

// mayBeTSX reports whether code contains the end of a tag. Most files don't, and are not parsed
// twice.
func mayBeTSX(ext, code string) bool {
	return ext == ".ts" && (strings.Contains(code, "/>") || strings.Contains(code, "</"))
}

func strip(ext, code string) (*Stripped, *SyntaxError) {
	d, c, loader := newDraft(code), compiler{file: "snippet" + ext}, loaderOf(ext)
	if err := c.checkFile(d, loader); err != nil {
		return nil, err
	}
	options := api.TransformOptions{Loader: loader, Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude}
	result, err := c.transform(d, options)
	if err != nil && strings.Contains(code, "@") { // the other files may select them
		options.TsconfigRaw = keepsImports.config(true)
		if legacy, failed := c.transform(d, options); failed == nil {
			result, err = legacy, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &Stripped{string(result.Code), ext, newTranslation(d.text, string(result.Code), result.Map)}, nil
}

// checkFile checks size and encoding, and rejects Markdown, which esbuild does not.
func (c *compiler) checkFile(d draft, loader api.Loader) *SyntaxError {
	n := validLength(d.text)
	var err *SyntaxError
	switch {
	case len(d.text) > MaxCode:
		err = d.errorAt(0, fmt.Sprintf("the file has %d bytes, the limit is %d", len(d.text), MaxCode))
	case n < len(d.text):
		err = d.errorAt(n, "the code is not UTF-8")
	default:
		return c.findFence(d, loader)
	}
	err.Limit = true
	return err
}

// Position returns the line and column of an offset in the file. Both count from 1, columns
// in UTF-16 units.
func (s *Stripped) Position(offset int) (line, column int) {
	line, column = s.from.position(offset)
	return line + 1, column + 1
}

// Comments that select TypeScript's older decorators, as the options of tsconfig.json do.
const (
	legacyPragma   = "@experimentalDecorators"
	metadataPragma = "@emitDecoratorMetadata"
)

// Pragmas returns comments for the end of a file's code that select the decorators of a
// tsconfig.json, or "". Options that it extends are not known.
func Pragmas(config string) (text string) {
	pragmas := map[string]string{`"experimentalDecorators"`: legacyPragma, `"emitDecoratorMetadata"`: metadataPragma}
	l := newLexer(strings.TrimPrefix(config, bom)) // JSON with comments and final commas
	name, colon := "", ""                          // the two tokens before the current one
	for t := l.next(); t.kind != atEnd && t.kind != notAToken; t = l.next() {
		token := l.code[t.start:t.end]
		if colon == ":" && token == "true" && pragmas[name] != "" {
			text += "\n// " + pragmas[name]
		}
		name, colon = colon, token
	}
	return text
}

// hasPragma reports whether a comment of the code contains a pragma.
func hasPragma(code, pragma string) bool {
	at := strings.Index(code, pragma)
	if at < 0 {
		return false
	}
	line := strings.TrimSpace(code[strings.LastIndexByte(code[:at], '\n')+1 : at])
	return strings.Contains(line, "//") || strings.Contains(line, "/*") || strings.HasPrefix(line, "*")
}

// LegacyDecorators reports whether a comment of the code selects TypeScript's older decorators, which
// include parameter decorators.
func LegacyDecorators(code string) bool { return hasPragma(code, legacyPragma) }

// NoMetadata is the error of code for which UsesMetadata is true.
const NoMetadata = "emitDecoratorMetadata is not supported: it needs a compiler that knows all types"

// UsesMetadata reports whether translated code has decorators for which the code selects metadata,
// which esbuild does not support.
func UsesMetadata(code, translated string) bool {
	return hasPragma(code, metadataPragma) && strings.Contains(translated, "__decorateClass(")
}

// Config returns a tsconfig.json for code, so that esbuild does not search for one.
func Config(code string) string { return dropsImports.config(LegacyDecorators(code)) }

// imports selects the imports of TypeScript that esbuild keeps.
type imports bool

const (
	keepsImports imports = true  // all imports except type imports
	dropsImports imports = false // only imports that the code uses as values: others may be types
)

func (i imports) config(legacy bool) string {
	return fmt.Sprintf(`{"compilerOptions": {"verbatimModuleSyntax": %t, "experimentalDecorators": %t}}`, i, legacy)
}

// CheckFile returns the extension of the language of a file to be bundled: .tsx for a .ts file that is valid only as
// TSX. Linter and bundler thus read the same program. The error is about code that esbuild does not reject: for import()
// with an expression as its path, it would search folders.
func CheckFile(name, code string) (ext string, err *SyntaxError) {
	ext = path.Ext(name)
	if ext == ".json" {
		return ext, nil
	}
	d, c := newDraft(code), compiler{file: "snippet" + ext}
	err = c.checkFile(d, loaderOf(ext))
	imports := importCall().MatchString(code)
	if err != nil || !imports && !mayBeTSX(ext, code) {
		return ext, err
	}
	s, err := Strip(name, code)
	if err != nil { // also esbuild's when it bundles the file
		return ext, err
	}
	tree, at, ok := Parse(s.Code)
	if ok {
		at = tree.computedImport()
	}
	if !imports || at < 0 {
		return s.ext, nil
	}
	before, _ := s.Origin(at)
	return s.ext, d.errorAt(before, "import() needs a string as its path")
}

// importCall matches import in all code that calls it.
var importCall = lazyregexp.New(`import\s*[(./]`)

// computedImport returns the offset of a call of import with more than a string, or -1.
func (n *Node) computedImport() int {
	for n := range n.all() {
		if n.Kind != Call || n.Kids[0].Kind != ImportCall {
			continue
		}
		if len(n.Kids) < 2 || n.Kids[1].Kind != Literal && (n.Kids[1].Kind != Template || len(n.Kids[1].Kids) > 1) {
			return n.Start
		}
	}
	return -1
}
