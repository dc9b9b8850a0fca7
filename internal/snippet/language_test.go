package snippet

import (
	"strings"
	"testing"
)

func TestLanguage(t *testing.T) {
	for _, tc := range []struct{ name, code, want string }{
		{"a.ts", "const a = <b c={1} />", ".tsx"},
		{"a.ts", "const a = <b>don't</b>", ".tsx"},
		{"a.ts", "const a = <T,>(x: T) => <i>{x}</i>", ".tsx"},
		{"a.ts", "const a: number = 1", ".ts"},
		{"a.ts", "const a = <T>(x: T) => x; '</a>'", ".ts"},
		{"a.ts", "const a = <any>b; // <b/>", ".ts"},
		{"a.ts", "let a = ; <b/>", ".ts"}, // invalid in both
		{"a.ts", "const a = <b/>;" + strings.Repeat("[", 5000), ".ts"},
		{"a.ts", "const a = <b/>;" + strings.Repeat(" ", MaxCode), ".ts"},
		{"a.mts", "const a = <b/>", ".mts"},
		{"a.js", "const a = <b/>", ".js"},
		{"a.tsx", "const a = <T>b", ".tsx"},
		{"a.json", "</", ".json"},
	} {
		if got, _ := CheckFile(tc.name, tc.code); got != tc.want {
			t.Errorf("%s %.40q: %s, want %s", tc.name, tc.code, got, tc.want)
		}
	}
}
