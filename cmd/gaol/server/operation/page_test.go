package operation

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

// TestPage: docs/session.md lists all operations.
func TestPage(t *testing.T) {
	const page, begin, end = "../../../../docs/session.md", "<!-- operations -->\n", "<!-- end of operations -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %s", page, begin)
	}
	list := pageList()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+list+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != list {
		t.Errorf("%s is out of date: make generate", page)
	}
}

// pageList returns the names of all operations, with the params that OpenAPI does not document.
func pageList() string {
	var http, session []string
	for _, o := range All() {
		if name := "`" + o.Name + "`"; o.Path != "" {
			http = append(http, name)
		} else {
			session = append(session, name+" ("+fields(o.Input.Schema)+")")
		}
	}
	return "- Operations that HTTP has, too: " + strings.Join(http, ", ") + ".\n- Others, with their params: " + strings.Join(session, ", ") + ".\n"
}

// fields lists the fields of a type, the required ones first.
func fields(s *huma.Schema) string {
	if s == nil {
		return ""
	}
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return strings.Compare(a, b)
	})
	if len(names) > 0 {
		return "`" + strings.Join(names, "`, `") + "`"
	}
	return ""
}
