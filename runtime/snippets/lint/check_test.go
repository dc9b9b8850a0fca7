package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
)

// unmark removes the «rule» marks from a program, and returns the expected problems: line:column
// rule.
func unmark(marked string) (source string, want []string) {
	for {
		before, after, found := strings.Cut(marked, "«")
		source += before
		if !found {
			return source, want
		}
		rule, rest, _ := strings.Cut(after, "»")
		line := strings.Count(source, "\n") + 1
		before = strings.TrimPrefix(source[strings.LastIndex(source, "\n")+1:], "\ufeff") // a byte order mark is in no column
		column := len(utf16.Encode([]rune(before))) + 1
		want = append(want, fmt.Sprintf("%d:%d %s", line, column, rule))
		marked = rest
	}
}

func checkAll(t *testing.T, path string, programs []string) {
	t.Helper()
	for _, marked := range programs {
		source, want := unmark(marked)
		var got, messages []string
		for _, p := range Directive().Check(path, source) {
			got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Rule))
			messages = append(messages, p.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q\n%s", source, got, want, strings.Join(messages, "\n"))
		}
	}
}

func TestDenied(t *testing.T) {
	checkAll(t, "src/main.ts", denied)
	checkAll(t, "src/main.tsx", deniedTSX)
	checkAll(t, "src/main.ts", deniedTSX) // the entry of a snippet always has this name
}

func TestAccepted(t *testing.T) {
	checkAll(t, "src/main.ts", accepted)
	checkAll(t, "src/main.tsx", acceptedTSX)
	checkAll(t, "src/main.ts", acceptedTSX)
	t.Logf("%d denied, %d accepted", len(denied)+len(deniedTSX), len(accepted)+len(acceptedTSX))
}
