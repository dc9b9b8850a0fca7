package snippet

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Comments that select TypeScript's older decorators, as the options of tsconfig.json do.
const (
	legacyPragma   = "@experimentalDecorators"
	metadataPragma = "@emitDecoratorMetadata"
)

// Pragmas returns comments for the end of a file's code that select the decorators of a
// tsconfig.json, or "". Options that it extends are not known.
func Pragmas(config string) string {
	var c struct {
		CompilerOptions struct{ ExperimentalDecorators, EmitDecoratorMetadata bool }
	}
	if json.Unmarshal(plainJSON(config), &c) != nil { // TypeScript's compiler reports it
		return ""
	}
	text := ""
	if c.CompilerOptions.ExperimentalDecorators {
		text += "\n// " + legacyPragma
	}
	if c.CompilerOptions.EmitDecoratorMetadata {
		text += "\n// " + metadataPragma
	}
	return text
}

// plainJSON removes the comments and the final commas that a tsconfig.json may contain.
func plainJSON(text string) []byte {
	var out []byte
	l := lexer{code: strings.TrimPrefix(text, bom)}
	comma := ""
	for t := l.next(); t.kind != atEnd && t.kind != notAToken; t = l.next() {
		token := l.code[t.start:t.end]
		if token == "," {
			comma = token
			continue
		}
		if token != "}" && token != "]" {
			out = append(out, comma...)
		}
		comma = ""
		out = append(out, token...)
	}
	return out
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
