package snippet

import (
	"encoding/json"
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

// legacyConfig is a tsconfig.json that selects them.
const legacyConfig = `{"compilerOptions": {"verbatimModuleSyntax": true, "experimentalDecorators": true}}`

// LegacyDecorators reports whether a comment of the code selects TypeScript's older decorators, and
// those of parameters.
func LegacyDecorators(code string) bool { return hasPragma(code, legacyPragma) }

// usesMetadata reports whether translated code has decorators whose metadata the code asks for, which
// esbuild does not know.
func usesMetadata(code, translated string) bool {
	return hasPragma(code, metadataPragma) && strings.Contains(translated, "__decorateClass(")
}
