package snippet

import (
	"fmt"
	"strings"
	"testing"
)

func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i, i+1)
	}
	return b.String()
}

func TestEstimate(t *testing.T) {
	for _, tc := range []struct{ name, file, code, want string }{
		{"plain", "a.ts", "import { a } from './b.js'; export * from './c.js'; console.log(a)", ""},
		{"long TypeScript", "a.ts", "let a = [\n" + strings.Repeat("  'a string in an array of strings',\n", 4000) + "]", ""},
		{"long name in a string", "a.ts", "let a = '" + strings.Repeat("a", 10_000) + "'", ""},
		{"numbers of an enum", "a.ts", "enum A { " + repeat(200, "a%[2]d = a%[1]d + 1, ") + "}", ""},
		{"strings of an enum", "a.ts", "enum A { a = 'x', b = `y`, c = a + b } " + strings.Repeat("A.a;", 1000), ""},
		{"import()", "a.ts", "import('./a.js'); import(`./b.js`, {}); import.meta.url; import.defer('a')", ""},
		{"a comment", "a.ts", "  // such as import(name)\n", ""},
		{"another import", "a.ts", "reimport(a); $import(a); import_(a)", ""},

		{"typical", "a.ts", strings.Repeat(program20K(true), 3), ""},
		{"large", "a.ts", strings.Repeat("console.log(a.b, c(d[e]), { f: 1, g: 'h' });\n", 1500), ""},

		{"names that repeat", "a.ts", strings.Repeat("let a: (b) => c;", 3000), tooComplex},
		{"reserved names", "a.ts", strings.Repeat("eval(1);", 8000), tooComplex},
		{"deep", "a.ts", strings.Repeat("(", 5000), nestedTooDeeply},
		{"many tokens", "a.js", strings.Repeat("{", 120_000), tooComplex},
		{"long name", "a.ts", "let " + strings.Repeat("a", 1000) + " = 1", nameTooLong},
		{"long name in an export", "a.ts", "export { a as " + strings.Repeat("a", 1000) + " }", nameTooLong},
		{"long name behind a slash", "a.ts", "x\n}/1; export let " + strings.Repeat("a", 1000) + " = 1; 2/1", nameTooLong},
		{"long name between tags", "a.tsx", "<a>" + strings.Repeat("a", 1000) + "</a>", nameTooLong},
		{"chain of exports", "a.ts", repeat(1000, "export { a%[2]d as a%[1]d } from './a.js';"), tooComplex},
		{"chain behind a quote", "a.ts", "/'/;" + repeat(1000, "export { a%[2]d as a%[1]d } from './a.js';"), tooComplex},
		{"chain in one clause", "a.ts", "export {" + repeat(1000, "a%[2]d as a%[1]d,") + "} from './a.js'", tooComplex},
		{"ways", "a.ts", strings.Repeat("export * from './b.js';", 600), tooComplex},
		{"doubling enum", "a.ts", "enum A { a0 = 'xxxxxxxx', " + repeat(40, "a%[2]d = a%[1]d + a%[1]d, ") + "}", tooComplex},
		{"doubling templates", "a.ts", "enum A { a0 = 'xxxxxxxx', " + repeat(40, "a%[2]d = `${a%[1]d}${a%[1]d}`, ") + "}", tooComplex},
		{"doubling behind a brace", "a.ts", "enum A { a0 = 'xxxxxxxx', a = /}/.source, " + repeat(40, "a%[2]d = a%[1]d + a%[1]d, ") + "}", tooComplex},
		{"large enum", "a.ts", "enum A { a = '" + strings.Repeat("x", 20_000) + "' } " + strings.Repeat("A.a;", 5000), tooComplex},
		{"computed", "a.ts", "import('./' + a)", computedImport},
		{"computed template", "a.ts", "import /* */ (`./${a}`)", computedImport},
		{"computed in parentheses", "a.ts", "import(('./' + a))", computedImport},
		{"computed, deferred", "a.ts", "import . defer ('./' + a)", computedImport},
		{"computed behind a slash", "a.ts", "x\n}/import('./' + a)/1", computedImport},
		{"computed behind a comment in a template", "a.ts", "`\n// ${import('./' + a)}`", computedImport},
		{"not UTF-8", "a.ts", "let a = '\xff'", "the code is not UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e Estimate
			err := e.Add(tc.file, tc.code)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%v", err)
			case tc.want != "" && (err == nil || err.Message != tc.want || !err.Limit):
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// Files that are harmless alone can exceed a limit together.
func TestEstimateOfFiles(t *testing.T) {
	doubling := "enum A { a = 'xxxxxxxxxxxxxxxx', " + strings.Repeat("b = a + a, ", 5) + "}"
	stars := "export * from './b.js'; export * from './c.js';"
	for name, file := range map[string]string{
		"enums":     doubling,
		"chains":    repeat(200, "export { a%[2]d as a%[1]d } from './a.js';"),
		"stars":     strings.Repeat(stars, 4),
		"ambiguous": stars + repeat(30, "export { a%[2]d as a%[1]d } from './a.js';"),
	} {
		var e Estimate
		var err *SyntaxError
		for i := range 10 {
			if err = e.Add(fmt.Sprintf("src/f%d.ts", i), file); err != nil {
				break
			}
			if i == 0 && err != nil {
				t.Errorf("%s: %v for the first file", name, err)
			}
		}
		if err == nil {
			t.Errorf("%s: the files are accepted", name)
		}
	}
}
