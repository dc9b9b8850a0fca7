package lint

import (
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"gaol/internal/snippet"
)

// FuzzCheck checks that no code makes the linter panic, that all code which esbuild can
// print can be read again, and that positions are in the file.
func FuzzCheck(f *testing.F) {
	for _, list := range [][]string{denied, accepted, deniedTSX, acceptedTSX} {
		for _, marked := range list {
			source, _ := unmark(marked)
			f.Add(source, uint8(len(source)%4))
		}
	}
	f.Fuzz(func(t *testing.T, source string, form uint8) {
		path := "a" + []string{".ts", ".tsx", ".js", ".jsx"}[form%4]
		start := time.Now()
		problems := Directive().Check(path, source)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%v for %d bytes", took, len(source))
		}
		if file, err := snippet.Strip(path, source); err == nil {
			if _, at, ok := snippet.Parse(file.Code); !ok {
				t.Errorf("cannot read %.300q at %d", file.Code, at)
			}
		}
		for _, p := range problems {
			checkPosition(t, source, p)
		}
	})
}

func checkPosition(t *testing.T, source string, p Problem) {
	t.Helper()
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(source), "\n")
	if p.Line < 1 || p.Line > len(lines) {
		t.Fatalf("%v: the file has %d lines", p, len(lines))
	}
	if n := len(utf16.Encode([]rune(lines[p.Line-1]))); p.Column < 1 || p.Column > n+1 {
		t.Fatalf("%v: the line has %d columns", p, n)
	}
}
