package snippet

import (
	"fmt"
	"testing"
)

func TestComputedImport(t *testing.T) {
	for code, want := range map[string]string{
		"import('./a'); import(`./b`); import.meta; import('c', { with: { type: 'json' } })": "",
		"'import(x)'; // import(x)\n/* import(x) */ `import(x)`; a.import(x)":                "",
		"let a: string\n  import(a)":               "2:3",
		"import('./' + a)":                         "1:1",
		"f(import /* b */ (`./${a}`))":             "1:3",
		"class A { [import(a)]() {} }":             "1:12",
		"import.source(a)":                         "1:1",
		"import(/* the file */ './a', await 1, 2)": "1:", // invalid
	} {
		got := ""
		if _, err := CheckFile("a.ts", code); err != nil {
			got = fmt.Sprintf("%d:%d", err.Line, err.Column)
		}
		if got != want && (want != "1:" || got == "") {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}
