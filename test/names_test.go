package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`(Test[A-Za-z0-9]*)(\\*?)`")

// Every test that SECURITY.md names exists. A name that ends in * is a prefix.
func TestSecurityDocNamesTests(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	names := testName.FindAllStringSubmatch(string(text), -1)
	if len(names) < 30 {
		t.Fatalf("only %d tests are named", len(names))
	}
	known := testFunctions(t)
	for _, match := range names {
		if name, isPrefix := match[1], match[2] == "*"; !anyTest(known, name, isPrefix) {
			t.Errorf("SECURITY.md names %s, which does not exist", name)
		}
	}
}

func anyTest(known map[string]bool, name string, isPrefix bool) bool {
	for function := range known {
		if function == name || isPrefix && strings.HasPrefix(function, name) {
			return true
		}
	}
	return false
}

// The Makefile finds the marks of package tier by lines, and runs the tests by name: a mark is the first
// statement of a test, whose name no other package has.
func TestTierMarks(t *testing.T) {
	marked, named := map[string]string{}, map[string]int{}
	eachTestFile(t, func(path string, file *ast.File) {
		calls := 0
		ast.Inspect(file, func(n ast.Node) bool {
			if isMark(n) {
				calls++
			}
			return true
		})
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || f.Recv != nil {
				continue
			}
			named[f.Name.Name]++
			if len(f.Body.List) > 0 && isMark(f.Body.List[0]) {
				calls--
				marked[f.Name.Name] = path
			}
		}
		if calls != 0 {
			t.Errorf("%s: %d marks are not the first statement of a test", path, calls)
		}
	})
	if len(marked) < 30 {
		t.Errorf("only %d tests have a mark", len(marked))
	}
	for name, path := range marked {
		if named[name] > 1 {
			t.Errorf("%s: another package has a test %s, too", path, name)
		}
	}
}

// isMark reports whether a node is a statement such as tier.Soak(t).
func isMark(n ast.Node) bool {
	s, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	name, ok := f.X.(*ast.Ident)
	return ok && name.Name == "tier"
}

// testFunctions are the names of all functions in the repository's test files.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	eachTestFile(t, func(_ string, file *ast.File) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				known[f.Name.Name] = true
			}
		}
	})
	return known
}

func eachTestFile(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == ".git"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			visit(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
