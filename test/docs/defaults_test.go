package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// Prose repeats the default limits where readers look for them: the comments of runtime.Limits, the API's
// documentation, the table of the guide, and the overview of the README.
func TestDefaults(t *testing.T) {
	readme := readPage(t, "README.md")
	_, guide, found := strings.Cut(prose(t, "docs/guide.md"), "\n## Defaults\n")
	if !found {
		t.Fatal("docs/guide.md lacks the section Defaults")
	}
	comments := fieldComments(t, "runtime/limits.go", "Limits")
	limits := reflect.ValueOf(runtime.DefaultLimits())
	for i := range limits.NumField() {
		name := limits.Type().Field(i).Name
		want := defaultText(limits.Field(i).Interface())
		if !strings.Contains(comments[name], "default "+want) && !strings.Contains(comments[name], "default: "+want) {
			t.Errorf("comment of Limits.%s: %q, want default %s", name, comments[name], want)
		}
		field, found := fieldOfRequest(name)
		if doc := field.Tag.Get("doc"); !found || !strings.Contains(doc, "By default "+strings.Replace(want, "no limit", "without limit", 1)+".") {
			t.Errorf("doc of %s: %q, want default %s", name, doc, want)
		}
		if row := lineWith(guide, "`Limits."+name+"`"); !strings.Contains(row, strings.Replace(want, "no limit", "not limited", 1)) {
			t.Errorf("guide: row %q, want %s for Limits.%s", row, want, name)
		}
	}
	timeout := fmt.Sprintf("%.0f s", runtime.DefaultTimeout.Seconds())
	if row := lineWith(guide, "`RunOptions.Timeout`"); !strings.Contains(row, timeout) {
		t.Errorf("guide: row %q, want %s", row, timeout)
	}
	l := runtime.DefaultLimits()
	if want := fmt.Sprintf("%s, %v CPU, %d processes, %s a run", defaultText(l.Memory), l.CPUs, l.Pids, timeout); !strings.Contains(readme, want) {
		t.Errorf("README.md lacks %q", want)
	}
}

// defaultText is a limit as prose has it.
func defaultText(limit any) string {
	switch n := limit.(type) {
	case time.Duration:
		if n == 0 {
			return "no limit"
		}
	case int64:
		if n >= 1<<20 {
			return fmt.Sprintf("%d MiB", n>>20)
		}
		if n >= 1000 {
			return fmt.Sprintf("%d,%03d", n/1000, n%1000)
		}
	}
	return fmt.Sprint(limit)
}

// fieldOfRequest returns the field of a request's limits for a field of runtime.Limits.
func fieldOfRequest(name string) (reflect.StructField, bool) {
	return reflect.TypeFor[requestjson.Limits]().FieldByNameFunc(func(s string) bool { return strings.TrimSuffix(s, "Ms") == name })
}

// fieldComments are the comments beside the fields of a struct.
func fieldComments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repo, file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
			for _, f := range spec.Type.(*ast.StructType).Fields.List {
				comments[f.Names[0].Name] = f.Comment.Text()
			}
		}
		return true
	})
	return comments
}

// lineWith returns the first line that contains a text.
func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}
