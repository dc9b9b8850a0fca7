package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Entry is the module of a set for one specifier.
type Entry struct {
	File  string   `json:"file"`            // in the set's folder
	Names []string `json:"names,omitempty"` // the exports, sorted

	// Dynamic: a module in CommonJS whose names are unknown. File exports its exports object
	// as default.
	Dynamic bool `json:"dynamic,omitempty"`

	// Problem is the reason why the package cannot be imported, or empty.
	Problem string `json:"problem,omitempty"`
}

func (e Entry) equal(o Entry) bool {
	return e.File == o.File && e.Dynamic == o.Dynamic && e.Problem == o.Problem && slices.Equal(e.Names, o.Names)
}

// stub returns a module for esbuild that re-exports the entry in a folder. Of an unknown or
// dynamic module, any name may be imported.
func (e Entry) stub(folder string) string {
	file := strconv.Quote(folder + e.File)
	if e.Dynamic || e.File == "" {
		return fmt.Sprintf("import m from %s; module.exports = m", file)
	}
	list := make([]string, len(e.Names))
	for i, name := range e.Names {
		list[i] = quoteJS(name)
	}
	return fmt.Sprintf("export {%s} from %s", strings.Join(list, ","), file)
}

// wrapper returns a module that exports the given names of the exports object of a module
// in CommonJS. As in Node, later changes of the values are not seen. default is the
// exports object or, if that was an ES module before, its default: as in bundlers.
func wrapper(file string, names []string) string {
	var values, exports strings.Builder
	whole := "m"
	for i, name := range names {
		fmt.Fprintf(&values, "const v%d = get(%s);\n", i, quoteJS(name))
		switch name {
		case "default":
			if slices.Contains(names, "__esModule") {
				whole = fmt.Sprintf("v%d", i)
			}
			continue
		case "__esModule":
			continue
		}
		fmt.Fprintf(&exports, "v%d as %s, ", i, quoteJS(name))
	}
	return fmt.Sprintf("import m from %s;\nconst get = (name) => { try { return m[name]; } catch {} };\n%sexport { %s%s as default };\n",
		strconv.Quote("./"+file), values.String(), exports.String(), whole)
}

// wrapped returns the names that the wrapper exports.
func wrapped(names []string) []string {
	list := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "default" || name == "__esModule" })
	list = append(list, "default")
	slices.Sort(list)
	return list
}
