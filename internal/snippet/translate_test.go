package snippet

import (
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	for _, tc := range []struct {
		name, code string
		commonJS   bool
		want       string
	}{
		{"a.ts", "enum A { B }\nlet a: A", false, "let a;\n//# sourceMappingURL=data:application/json;base64,"},
		{"a.mts", "import a, { type B } from 'b'\na", false, `import a from "b";`},
		{"a.ts", "import { type A, b, C } from 'b'\nb as C", false, "import { b } from \"b\";\nb;"},
		{"a.ts", "\ufeff#!/usr/bin/env node\nlet a: A", false, "#!/usr/bin/env node\nlet a;"},
		{"a.cts", "import a from 'b'\na", true, `require("b")`},
		{"a.tsx", "let a: A = <p />", false, `React.createElement("p", null)`},
		{"a.jsx", "let a = <p />", false, `React.createElement("p", null)`},
		{"a.ts", "#!/usr/bin/node\nlet a: A", false, "#!/usr/bin/node\nlet a;"},
	} {
		got, err := Translate(tc.name, tc.code, tc.commonJS)
		if err != nil || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q became %v\n%s", tc.name, tc.code, err, got)
		}
	}
}

func TestTranslateRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, code string
		want       string
		limit      bool
	}{
		{"a.ts", "let a: A\nlet b = = 1", `2:9: Unexpected "="`, false},
		{"a.ts", "let a = <p />", `1:`, false},
		{"a.jsx", "let a: A", `1:6: `, false},
		{"a.ts", strings.Repeat(" ", MaxCode+1), "the file has 262145 bytes, the limit is 262144", true},
		{"a.ts", "'\xff'", "1:2: the code is not UTF-8", true},
	} {
		_, err := Translate(tc.name, tc.code, false)
		if err == nil || !strings.Contains(err.Error(), tc.want) || err.Limit != tc.limit {
			t.Errorf("%s: %.40q: %v, want %s", tc.name, tc.code, err, tc.want)
		}
	}
}
