package work

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
	"gaol/test/tier"
)

// repeated repeats code with a number for # and the next number for $, up to a size.
func repeated(size int, code string) string {
	var b strings.Builder
	for i := 0; ; i++ {
		part := strings.NewReplacer("#", strconv.Itoa(i), "$", strconv.Itoa(i+1)).Replace(code)
		if b.Len()+len(part) > size {
			return b.String()
		}
		b.WriteString(part)
	}
}

// hostileFiles are formats for parts that files repeat. Each is tried in one file and in ten
// that import each other, at several sizes: the largest that is accepted takes longest.
var hostileFiles = []struct{ name, start, part, end string }{
	{"chain", "", "export { a$ as a# } from './f0.js';", ""},
	{"chain by imports", "", "import { a$ as b# } from './f1.js'; export { b# as a# };", ""},
	{"ambiguous", "export * from './f1.js'; export * from './f2.js';", "export { a$ as a# } from './f0.js';", ""},
	{"stars", "export const b = 1;", "export * from './f#.js';", ""},
	{"stars of many names", "export * from './f1.js'; export * from './f2.js';", "export let a#_$ = 1;", ""},
	{"missing names", "import * as n from './f1.js';", "n.a#;", ""},
	{"missing imports", "", "import { a# as b# } from './f1.js'; b#;", ""},
	{"members of a namespace with a chain", "import * as n from './f0.js'; export { a1 as a0, a2 as a1, a3 as a2, a4 as a3 } from './f0.js';", "n.a#;", ""},
	{"long names", "import { " + strings.Repeat("a", 250) + " } from './f0.js';", "export let " + strings.Repeat("b", 240) + "#;", ""},
	{"enum", "export enum A { a = 'xxxxxxxxxxxxxxxx', b = a + a, c = b + b, d = c + c }", "A.d;", ""},
	{"enum elsewhere", "import { A } from './f1.js'; export enum B { a = 'xxxxxxxxxxxxxxxx' }; export { B as A };", "A.a;", ""},
	{"effects", "", "import './f#.js';", ""},
	{"import()", "", "import('./f1.js');", ""},
	{"missing files", "", "import './nope#.js';", ""},
	{"await", "await 1;", "await import('./f1.js');", ""},
	{"same names", "", "let x# = 1; export { x# as y# };", ""},
	{"numbered names", "export let x = 1;", "let x# = x;", ""},
	{"scopes", "let x = 1;", "{ let x# = x; ", strings.Repeat("}", 400)},
	{"JSX", "", "<a b={", ""},
	{"errors", "", "let a; let a;", ""},
	{"constants", "const a = 1;", "a = 2;", ""},
	{"exports of one name", "", "export { a };", "let a"},
	{"require", "", "require('./f#.js');", ""},
	{"import =", "", "import a# = require('./f1.js'); a#;", ""},
	{"pure", "", "/* @__PURE__ */ f();", ""},
	{"legal comments", "", "/*! # */", ""},
	{"templates", "let x: any = ``", " + `1`", ""},
	{"strings", "let x: any = ''", " + 'x'", ""},
	{"numbers", "let x: any = 1", " + 1", ""},
}

// TestHostileFiles is TestHostile for files that are bundled and linted together.
func TestHostileFiles(t *testing.T) {
	tier.Soak(t)
	sizes := []int{5000, 20_000, 60_000, 190_000}
	if testing.Short() {
		sizes = sizes[:1]
	}
	var list [][]bundle.File
	for _, h := range hostileFiles {
		for _, count := range []int{1, 10} {
			for _, size := range sizes {
				if size*count > 200_000 {
					continue
				}
				files := make([]bundle.File, 10) // what each file imports exists
				for i := range files {
					files[i] = bundle.File{Path: fmt.Sprintf("src/f%d.ts", i), Source: h.start}
					if i < count {
						files[i].Source += repeated(size, h.part) + h.end
					}
				}
				files = append(files, bundle.File{Path: bundle.EntryPath, Source: "export * from './f0'"})
				list = append(list, files)
			}
		}
	}
	each(t, list, func(d *Domain, files []bundle.File) error {
		rules := lint.Directive()
		if _, err := d.Bundle(t.Context(), bundle.Job{Files: files[:1], Rules: &rules}); err != nil {
			return err
		}
		_, _, err := bundle.Bundle(t.Context(), files, bundle.Options{Run: d.Bundle})
		return err
	})
}
