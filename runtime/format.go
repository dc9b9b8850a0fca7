package runtime

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"gaol/internal/snippet"
)

// ModuleFormat is the module format of a program.
type ModuleFormat int

const (
	// FormatAuto is for code that is given as text: an ES module, unless the code uses a
	// name that only CommonJS has (require, module, exports, __filename or __dirname) and
	// nothing that only ES modules have: an import or export declaration, import.meta or
	// top-level await. Such a name counts only as a variable that neither the code nor
	// Options.Bindings declare, not in strings, comments, properties or parameters.
	FormatAuto ModuleFormat = iota

	// FormatESM is an ES module.
	FormatESM

	// FormatCommonJS is CommonJS: not in strict mode, with require, and without top-level
	// await.
	FormatCommonJS

	// FormatDetect is for the text of a file: CommonJS, unless the code uses something that
	// only ES modules have. Node treats a .js file like this if no package.json gives its
	// type.
	FormatDetect
)

// String returns the format's name on the command line.
func (f ModuleFormat) String() string {
	switch f {
	case FormatAuto:
		return "auto"
	case FormatESM:
		return "esm"
	case FormatCommonJS:
		return "cjs"
	case FormatDetect:
		return "detect"
	}
	return fmt.Sprintf("ModuleFormat(%d)", int(f))
}

// formats has Node's names.
var formats = map[ModuleFormat]string{FormatESM: "module", FormatCommonJS: "commonjs"}

// endings maps the ending of a file name to the format that it implies; FormatAuto: none.
var endings = map[string]ModuleFormat{
	".mjs": FormatESM, ".mts": FormatESM,
	".cjs": FormatCommonJS, ".cts": FormatCommonJS,
	".js": FormatAuto, ".ts": FormatAuto, ".tsx": FormatAuto, ".jsx": FormatAuto,
}

// script is a program's code as Node gets it.
type script struct {
	name   string
	code   string
	format string // Node's name for it
	mapped bool   // it has a source map
}

// newScript translates a program's code to JavaScript and determines its format. isGlobal
// reports whether the host defines a variable. given is the file name, or empty.
func newScript(code, given string, asked ModuleFormat, isGlobal func(string) bool) (script, error) {
	name := cmp.Or(given, defaultName)
	fixed, known := endings[path.Ext(name)]
	if !known || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
		return script{}, optionError("Name", "%q is no file name that ends in .mjs, .js, .cjs, .mts, .ts, .cts, .tsx or .jsx", given)
	}
	if given == "" {
		fixed = FormatAuto
	}
	switch {
	case asked < FormatAuto || asked > FormatDetect:
		return script{}, optionError("Format", "there is no format %d", asked)
	case fixed == FormatAuto:
	case formats[asked] != "" && asked != fixed:
		return script{}, optionError("Format", "%s contradicts the ending of %q", asked, name)
	default:
		asked = fixed
	}
	s := translate(script{name: name, code: code}, asked, isGlobal)
	if given == "" && s.format == "commonjs" {
		s.name = defaultCommonJS
	}
	return s, nil
}

// translate turns TypeScript and JSX into JavaScript. Code that esbuild refuses becomes a
// program that throws the error. Code that is too large for esbuild is left to Node, which
// can strip types.
func translate(s script, asked ModuleFormat, isGlobal func(string) bool) script {
	if !snippet.Translates(s.name) {
		s.format = formats[detect(s.code, asked, isGlobal)]
		return s
	}
	code, err := snippet.Translate(s.name, s.code, asked == FormatCommonJS)
	if err != nil && err.Limit && !strings.HasSuffix(s.name, "x") {
		s.format = formats[detect(s.code, asked, isGlobal)]
		s.format += "-typescript"
		return s
	}
	if err != nil {
		code = err.Program(s.name)
	}
	return script{s.name, code, formats[detect(code, asked, isGlobal)], true}
}

// detect decides between ES module and CommonJS.
func detect(code string, asked ModuleFormat, isGlobal func(string) bool) ModuleFormat {
	switch asked {
	case FormatAuto:
		if !snippet.MentionsCommonJS(code) {
			return FormatESM
		}
		if s := snippet.SyntaxOf(code, isGlobal); !s.CommonJS || s.Module {
			return FormatESM
		}
		return FormatCommonJS
	case FormatDetect:
		if snippet.SyntaxOf(code, isGlobal).Module {
			return FormatESM
		}
		return FormatCommonJS
	default:
		return asked
	}
}
