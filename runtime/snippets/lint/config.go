package lint

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gaol/internal/strictjson"
)

// maxConfig is the maximum size of rules as JSON.
const maxConfig = 1 << 20

// config is the JSON form of rules: the rules named by Extends, with the fields of Rules added
// and the rules in Allow removed.
type config struct {
	Extends string `json:"extends"` // "directive", or "" for none
	Rules
	Allow struct {
		Names      []string `json:"names"`
		Properties []string `json:"properties"`
		Constructs []string `json:"constructs"`
	} `json:"allow"`
}

// Parse parses rules in JSON: the fields of [Rules], and extends and allow:
//
//	{
//	  "extends": "directive",
//	  "imports": ["zustand"],
//	  "names": {"alert": "snippets have no window"},
//	  "allow": {"names": ["setTimeout"], "properties": ["constructor"], "constructs": ["import-meta"]}
//	}
func Parse(data []byte) (Rules, error) {
	if len(data) > maxConfig {
		return Rules{}, fmt.Errorf("lint rules: more than %d bytes", maxConfig)
	}
	var c *config
	err := strictjson.Decode(data, &c)
	if err == nil && c == nil { // null, which would deny nothing
		err = errors.New("want an object")
	}
	var r Rules
	if err == nil {
		r, err = c.rules()
	}
	if err != nil {
		return Rules{}, fmt.Errorf("lint rules: %w", err)
	}
	return r, nil
}

func (c config) rules() (Rules, error) {
	r := Rules{DeniedImports: map[string]string{}, Names: map[string]string{}, Properties: map[string]string{}}
	switch c.Extends {
	case "":
	case "directive":
		r = Directive()
	default:
		return Rules{}, fmt.Errorf("extends: unknown rules %q", c.Extends)
	}
	for _, name := range slices.Concat(c.Constructs, c.Allow.Constructs) {
		if !slices.Contains(constructs, name) {
			return Rules{}, fmt.Errorf("constructs: unknown rule %q", name)
		}
	}
	r.Imports = slices.Concat(r.Imports, c.Imports)
	for _, name := range c.Imports {
		delete(r.DeniedImports, name)
	}
	maps.Copy(r.DeniedImports, c.DeniedImports)
	maps.Copy(r.Names, c.Names)
	maps.Copy(r.Properties, c.Properties)
	r.Constructs = slices.Concat(r.Constructs, c.Constructs)
	for _, name := range c.Allow.Names {
		delete(r.Names, name)
	}
	for _, name := range c.Allow.Properties {
		delete(r.Properties, name)
	}
	r.Constructs = slices.DeleteFunc(r.Constructs, func(name string) bool { return slices.Contains(c.Allow.Constructs, name) })
	return r, nil
}

// Rules are restrictions on code. The zero value rejects only invalid code.
type Rules struct {
	// Imports are the packages that may be imported, with all their subpaths. It applies if
	// Constructs contains [Import].
	Imports []string `json:"imports,omitempty"`

	// DeniedImports are packages that may not be imported, with the reason.
	DeniedImports map[string]string `json:"deniedImports,omitempty"`

	// Names are variables that code may not use unless it declares them, with the reason and
	// what to do instead.
	Names map[string]string `json:"names,omitempty"`

	// Properties are names of properties that code may not use of any object, with the
	// reason.
	Properties map[string]string `json:"properties,omitempty"`

	// Constructs are the other rules that apply: [Import] to [With].
	Constructs []string `json:"constructs,omitempty"`
}

// The rules that a [Problem] can name.
const (
	Syntax   = "syntax"   // the code is not valid, or too large or nested too deeply
	Name     = "name"     // a variable of Rules.Names
	Property = "property" // a property of Rules.Properties: a.b, a['b'], {b} = a, Reflect.get(a, 'b')

	Import         = "import"          // an import or export declaration of a package that is not in Rules.Imports
	RelativeImport = "relative-import" // of a file, without .js at the end
	ImportCall     = "import-call"     // import(a)
	ImportMeta     = "import-meta"     // import.meta
	Function       = "function"        // new Function(a), Function(a)
	GlobalIndex    = "global-index"    // globalThis[a]
	GlobalAlias    = "global-alias"    // globalThis other than in globalThis.a and typeof globalThis
	With           = "with"            // with (a) b
)

var constructs = []string{Import, RelativeImport, ImportCall, ImportMeta, Function, GlobalIndex, GlobalAlias, With}

func (r Rules) has(construct string) bool { return slices.Contains(r.Constructs, construct) }

// Reasons of the rules of Directive.
const (
	nodeOnly    = "only Node has it, and examples should run in browsers too"
	noNetwork   = "snippets make no requests. Use fixed data"
	noTimers    = "the result would depend on time. Let the framework schedule the work"
	noStrings   = "code in strings cannot be checked. Write the code itself"
	useImport   = "snippets are ES modules. Write an import declaration"
	needsServer = "it is a tool for the command line or a server, not for snippets"
)

// Directive returns the rules for snippets of the Directive framework. The caller may change
// them.
func Directive() Rules {
	r := Rules{
		DeniedImports: make(map[string]string),
		Names:         make(map[string]string),
		Properties:    map[string]string{"constructor": "it leads to Function, which makes code of strings. Use the class by its name"},
		Constructs:    slices.Clone(constructs),
	}
	for _, name := range []string{"core", "ai", "query", "el", "react", "vue", "svelte", "solid", "lit", "optimistic", "timeline",
		"mutator", "knowledge", "scaffold", "claude-plugin", "lint", "sources"} {
		r.Imports = append(r.Imports, "@directive-run/"+name)
	}
	for _, name := range []string{"cli", "mcp", "sandbox", "vite-plugin-api-proxy"} {
		r.DeniedImports["@directive-run/"+name] = needsServer
	}
	for reason, names := range map[string][]string{
		nodeOnly:  {"process", "__dirname", "__filename", "Buffer", "setImmediate"},
		useImport: {"require", "module"},
		noNetwork: {"fetch", "XMLHttpRequest", "WebSocket"},
		noStrings: {"eval", "Function"},
		noTimers:  {"queueMicrotask", "setTimeout", "setInterval", "clearTimeout", "clearInterval"},
	} {
		for _, name := range names {
			r.Names[name] = reason
			r.Properties[name] = "it may be the global of this name. Use another name"
		}
	}
	return r
}
