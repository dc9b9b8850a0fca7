package runtime

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"gaol/internal/snippet"
)

// ModuleFormat says how Node takes the text of a program.
type ModuleFormat int

const (
	// FormatAuto is for code that is given as text: an ES module, unless the code uses a
	// name that only CommonJS has (require, module, exports, __filename or __dirname) and
	// nothing that only ES modules have: an import or export declaration, import.meta or
	// top-level await. A name counts where it is a variable that neither the code nor
	// Options.Bindings declare, and so not in strings, comments, properties and parameters.
	FormatAuto ModuleFormat = iota

	// FormatESM is an ES module.
	FormatESM

	// FormatCommonJS is CommonJS: not in strict mode, with require, and without top-level
	// await.
	FormatCommonJS

	// FormatDetect is for the text of a file: CommonJS, unless the code has what only ES
	// modules have. Node takes a .js file so where no package.json says its type.
	FormatDetect
)

// String names the format as the command line does.
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

// formats are Node's names.
var formats = map[ModuleFormat]string{FormatESM: "module", FormatCommonJS: "commonjs"}

// endings are those of file names, with the format that they fix. FormatAuto: none.
var endings = map[string]ModuleFormat{
	".mjs": FormatESM, ".mts": FormatESM,
	".cjs": FormatCommonJS, ".cts": FormatCommonJS,
	".js": FormatAuto, ".ts": FormatAuto, ".tsx": FormatAuto, ".jsx": FormatAuto,
}

// script is a program as Node gets it.
type script struct {
	name   string
	code   string
	format string // Node's name for it
	mapped bool   // it has a source map
}

// script makes JavaScript of a program's code, and finds its format.
func (o programOptions) script(code string) (script, error) {
	name := cmp.Or(o.name, defaultName)
	fixed, known := endings[path.Ext(name)]
	if !known || strings.ContainsAny(name, "/\x00") || len(name) > 255 {
		return script{}, optionError("Name", "%q is no file name that ends in .mjs, .js, .cjs, .mts, .ts, .cts, .tsx or .jsx", o.name)
	}
	if o.name == "" {
		fixed = FormatAuto
	}
	asked := o.format
	switch {
	case asked < FormatAuto || asked > FormatDetect:
		return script{}, optionError("Format", "there is no format %d", asked)
	case fixed == FormatAuto:
	case formats[asked] != "" && asked != fixed:
		return script{}, optionError("Format", "%s contradicts the ending of %q", asked, name)
	default:
		asked = fixed
	}
	s := o.translate(script{name: name, code: code}, asked)
	if o.name == "" && s.format == "commonjs" {
		s.name = defaultCommonJS
	}
	return s, nil
}

// translate makes JavaScript of TypeScript and JSX. What esbuild refuses becomes a program
// that throws the error. What it is not to see, for its size, is left to Node where Node can
// read it.
func (o programOptions) translate(s script, asked ModuleFormat) script {
	if !snippet.Translates(s.name) {
		s.format = formats[o.detect(s.code, asked)]
		return s
	}
	code, err := snippet.Translate(s.name, s.code, asked == FormatCommonJS)
	if err != nil && err.Limit && !strings.HasSuffix(s.name, "x") {
		s.format = formats[o.detect(s.code, asked)]
		s.format += "-typescript"
		return s
	}
	if err != nil {
		code = err.Program(s.name)
	}
	return script{s.name, code, formats[o.detect(code, asked)], true}
}

// detect decides between ES module and CommonJS.
func (o programOptions) detect(code string, asked ModuleFormat) ModuleFormat {
	switch asked {
	case FormatAuto:
		if !snippet.MentionsCommonJS(code) {
			return FormatESM
		}
		if s := snippet.SyntaxOf(code, o.globals.has); !s.CommonJS || s.Module {
			return FormatESM
		}
		return FormatCommonJS
	case FormatDetect:
		if snippet.SyntaxOf(code, o.globals.has).Module {
			return FormatESM
		}
		return FormatCommonJS
	default:
		return asked
	}
}
