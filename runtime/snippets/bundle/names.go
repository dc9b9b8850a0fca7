package bundle

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

const (
	maxNames = 10_000
	// maxNameLength is in bytes; a longer one cannot be imported by its name.
	maxNameLength = 256
)

// NamesProgram returns an ES module that passes to globalThis.__return the names of the
// exports object of a module in CommonJS. It is for [PackagesOptions].Names. path is the
// module's path in the sandbox.
func NamesProgram(path string) string {
	return "import m from " + quoteJS(path) + `;
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
	var list []string
	for _, name := range names {
		if name != "" && len(name) <= maxNameLength && utf8.ValidString(name) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxNames)]
}

// quoteJS returns a string of JavaScript.
func quoteJS(text string) string {
	quoted, _ := json.Marshal(text) // a string has no error
	return string(quoted)
}
