package snippet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFrame(t *testing.T) {
	ten := strings.Repeat("a\n", 9) + "a"
	long := strings.Repeat("0123456789", 30)
	for _, tc := range []struct {
		name, code   string
		line, column int
		want         string
	}{
		{"one line", "a b", 1, 3, "> 1 | a b\n    |   ^\n"},
		{"after the end", "a", 1, 2, "> 1 | a\n    |  ^\n"},
		{"an empty line", "a\n\nb", 2, 1, "  1 | a\n> 2 |\n    | ^\n  3 | b\n"},
		{"lines around", ten, 8, 1, "   6 | a\n   7 | a\n>  8 | a\n     | ^\n   9 | a\n  10 | a\n"},
		{"no such line", "a", 2, 1, ""},
		{"no line at all", "a", 0, 1, ""},
		{"a column beyond the line", "a", 1, 9, "> 1 | a\n    |  ^\n"},
		{"tabs and control characters", "\t\x1b[1mb\u202e", 1, 6, "> 1 |  �[1mb�\n    |      ^\n"},
		{"two units of UTF-16", "😀b", 1, 3, "> 1 | 😀b\n    |  ^\n"},
		{"other ends of lines", "a\r\nb\u2028c", 3, 1, "  1 | a\n  2 | b\n> 3 | c\n    | ^\n"},
		{"a long line", long, 1, 201, "> 1 | …" + long[125:225] + "…\n    | " + strings.Repeat(" ", 76) + "^\n"},
		{"a long line's beginning", long, 1, 2, "> 1 | " + long[:100] + "…\n    |  ^\n"},
	} {
		if diff := cmp.Diff(tc.want, Frame(tc.code, tc.line, tc.column)); diff != "" {
			t.Errorf("%s: -want +got\n%s", tc.name, diff)
		}
	}
}
