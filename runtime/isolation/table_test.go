package isolation_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/isolation"
)

// rows returns the table's rows by feature.
func rows(t *testing.T) map[isolation.Feature]isolation.Row {
	t.Helper()
	all := map[isolation.Feature]isolation.Row{}
	for _, g := range isolation.Groups() {
		for _, r := range g.Rows {
			for _, f := range r.Features {
				if _, twice := all[f]; twice {
					t.Errorf("%s has two rows", f)
				}
				all[f] = r
			}
		}
	}
	return all
}

// Each row says for each isolation either how it supports the features, or why not.
func TestRowsAreComplete(t *testing.T) {
	for f, r := range rows(t) {
		if r.Native.Same {
			t.Errorf("%s: the first column cannot refer to itself", f)
		}
		supported := false
		for _, n := range isolation.Names() {
			s := r.In(n)
			if (s.How == "") == (s.Why == "") {
				t.Errorf("%s, %s: %+v", f, n, s)
			}
			supported = supported || s.Why == ""
		}
		if !supported {
			t.Errorf("no isolation supports %s", f)
		}
		if r.OCI.How == r.Native.How {
			t.Errorf("%s: both isolations have the same text", f)
		}
	}
}

// What packages policy and runtime have is in the table: a new operation, field, constant or
// method needs a row.
func TestTableListsAll(t *testing.T) {
	var want []isolation.Feature
	for _, scope := range policy.Scopes() {
		for _, op := range policy.Operations(scope) {
			want = append(want, isolation.Permission(scope, op))
		}
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[runtime.Options](), reflect.TypeFor[runtime.OCIOptions](),
		reflect.TypeFor[runtime.Limits](), reflect.TypeFor[runtime.NetworkLimits](),
	} {
		for i := range typ.NumField() {
			want = append(want, isolation.Feature(typ.Name()+"."+typ.Field(i).Name))
		}
	}
	sandbox := reflect.TypeFor[*runtime.NodeRuntime]()
	for i := range sandbox.NumMethod() {
		want = append(want, isolation.Feature("NodeRuntime."+sandbox.Method(i).Name))
	}
	for _, prefix := range []string{"Cause", "Source", "Launcher"} {
		names := constants(t, prefix)
		if len(names) < 2 {
			t.Errorf("package runtime has the constants %v of %s", names, prefix)
		}
		want = append(want, names...)
	}
	want = append(want, "ReadOnly", "CopyOnWrite", "ReadWrite", isolation.Park, "SpawnOptions.Terminal")

	table := rows(t)
	for _, f := range want {
		if _, ok := table[f]; !ok {
			t.Errorf("the table has no row for %s", f)
		}
	}
	for f := range table {
		if isName(f) && !slices.Contains(want, f) {
			t.Errorf("%s is not in packages policy and runtime", f)
		}
	}
}

// isName reports whether a feature is a name of packages policy and runtime.
func isName(f isolation.Feature) bool {
	return strings.Contains(string(f), ".") || strings.ToLower(string(f)) != string(f)
}

// constants returns the names of exported constants of package runtime with a prefix.
func constants(t *testing.T, prefix string) (names []isolation.Feature) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.CONST {
				continue
			}
			for _, spec := range d.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, prefix) {
						names = append(names, isolation.Feature(name.Name))
					}
				}
			}
		}
	}
	return names
}

// Each constant of runtime.Isolation has a column.
func TestColumns(t *testing.T) {
	for i, n := range isolation.Names() {
		if got := runtime.Isolation(i).String(); got != string(n) {
			t.Errorf("isolation %d is %s, and its column %s", i, got, n)
		}
	}
	if after := runtime.Isolation(len(isolation.Names())).String(); !strings.Contains(after, "(") {
		t.Errorf("isolation %s has no column", after)
	}
}
