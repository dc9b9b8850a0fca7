package operation

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
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
	table := pageTable()
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != table {
		t.Errorf("%s is out of date: make generate", page)
	}
}

func pageTable() string {
	var b strings.Builder
	b.WriteString("| method | by HTTP | params | result |\n| --- | --- | --- | --- |\n")
	for _, o := range All() {
		http := ""
		if o.Path != "" {
			http = "`" + o.Method + " " + o.Path + "`"
		}
		result := "null"
		if o.Output != nil {
			result = fields(outputSchema(o))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, http, fields(o.input.schema), result)
	}
	return b.String()
}

// outputSchema returns the schema of a result, nil for one of any kind.
func outputSchema(o *Operation) *huma.Schema {
	t := o.Output
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return huma.NewMapRegistry("#/", huma.DefaultSchemaNamer).Schema(t, false, o.Name)
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
