package snippet

import (
	"fmt"
	"strings"
	"testing"
)

// Each number of a program is at its own position before and after.
func TestStripPositions(t *testing.T) {
	for name, code := range map[string]string{
		"a.ts":       "type A = string;\nlet a: A = 1001 as any,\n\tb = <A>1002, 𝒳: Array<{ b: string }> = [1003]; /* é */ f<A>(1004)!",
		"lines.ts":   "a(1001);\r\nb(1002);\r\n\r\nc(`\n${1003}`, 1004)",
		"a.tsx":      "const a = <A b={1001}>text {1002}</A>;\nfunction f(x: number): number { return 1003 }",
		"class.ts":   "@d(1001) class A { constructor(private a = 1002) {} #b?: number = 1003; declare c: string }",
		"members.ts": "enum E { A = 1001, B = f(1002) }\nnamespace N { export const a = 1003 }",
		"a.js":       "\ufeffa(1001)\u2028b(1002)",
	} {
		s, err := Strip(name, code)
		code = strings.TrimPrefix(code, bom)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := 1001; i <= 1004; i++ {
			number := fmt.Sprint(i)
			at, want := strings.Index(s.Code, number), strings.Index(code, number)
			if at < 0 {
				continue
			}
			got, known := s.Origin(at)
			line, column := s.Position(got)
			wantLine, wantColumn := PositionOf(code, want)
			if got != want || !known || line != wantLine || column != wantColumn {
				t.Errorf("%s: %s is from %d, %d:%d, want %d, %d:%d", name, number, got, line, column, want, wantLine, wantColumn)
			}
		}
	}
}

// Each offset in the code leads to a position in the file.
func TestStripOrigins(t *testing.T) {
	code := "/* @license 😀 */ enum A { 'é', b }\nexport async function* f() { for await (const x of <any>y) {} }\n"
	s, err := Strip("a.ts", code)
	if err != nil {
		t.Fatal(err)
	}
	for offset := range len(s.Code) + 1 {
		if at, _ := s.Origin(offset); at < 0 || at > len(code) {
			t.Errorf("%d is from %d", offset, at)
		}
	}
}

func TestStripErrors(t *testing.T) {
	for _, tc := range []struct {
		name, code, want string
		limit            bool
	}{
		{"a.ts", "let a: = 1", `1:8: Unexpected "="`, false},
		{"a.js", "let a: A", `1:6: Expected ";" but found ":"`, false},
		{"a.ts", "a\xff", "1:2: the code is not UTF-8", true},
		{"a.ts", strings.Repeat(" ", MaxCode+1), "1:1: the file has 262145 bytes, the limit is 262144", true},
	} {
		if _, err := Strip(tc.name, tc.code); err == nil || err.Error() != tc.want || err.Limit != tc.limit {
			t.Errorf("%.50q: %v, want %s", tc.code, err, tc.want)
		}
	}
}
