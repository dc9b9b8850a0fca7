package bundle

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gaol/internal/lazyregexp"
	"gaol/internal/snippet"
)

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

// find returns the file of a clean path. A folder means its index.
func (b *build) find(name string, folder bool) (string, bool) {
	var list []string
	if !folder {
		base, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
		for _, source := range sources[ext] {
			list = append(list, base+source)
		}
		list = append(list, name)
		for _, ext := range implied {
			list = append(list, name+ext)
		}
	}
	for _, ext := range implied {
		list = append(list, path.Join(name, "index")+ext)
	}
	for _, name := range list {
		if _, ok := b.files[name]; ok {
			return name, true
		}
	}
	return "", false
}

// specifiers are names of packages with an optional path in them.
var specifiers = lazyregexp.New(`^(@[\w.~-]+/)?[\w~-][\w.~-]*(/[\w.~+@-]+)*$`)

const maxSpecifier = 200

func validSpecifier(text string) bool {
	return len(text) <= maxSpecifier && specifiers().MatchString(text) && path.Clean(text) == text
}

// builtins are Node's modules that need no node: before their name.
var builtins = strings.Fields(`assert assert/strict async_hooks buffer child_process cluster console constants
	crypto dgram diagnostics_channel dns dns/promises domain events fs fs/promises http http2 https inspector
	inspector/promises module net os path path/posix path/win32 perf_hooks process punycode querystring readline
	readline/promises repl stream stream/consumers stream/promises stream/web string_decoder sys timers
	timers/promises tls trace_events tty url util util/types v8 vm wasi worker_threads zlib`)

const (
	maxNames = 10_000
	// maxNameLength is in bytes; longer names cannot be imported.
	maxNameLength = 256
)

// NamesProgram returns an ES module that passes to globalThis.__return the names of the
// exports object of a module in CommonJS. It is for [PackagesOptions].Names. path is the
// module's path in the sandbox.
func NamesProgram(path string) string {
	return "import m from " + snippet.Quote(path) + `;
const names = new Set();
const isObject = (v) => v !== null && (typeof v === 'object' || typeof v === 'function');
const builtin = [Object.prototype, Function.prototype, Array.prototype];
for (let o = m; isObject(o) && !builtin.includes(o) && names.size < ` + "10000" + `; o = Object.getPrototypeOf(o)) {
  for (const name of Object.getOwnPropertyNames(o)) names.add(name);
}
names.delete('constructor');
if (typeof m === 'function') for (const name of ['length', 'name', 'prototype', 'arguments', 'caller']) names.delete(name);
globalThis.__return([...names]);
`
}

// checkedNames returns the names that a module can export, sorted.
func checkedNames(names []string) []string {
	list := slices.DeleteFunc(names, func(name string) bool {
		return name == "" || len(name) > maxNameLength || !utf8.ValidString(name)
	})
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxNames)]
}
