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
		name, isPrefix := match[1], match[2] == "*"
		found := known[name]
		for function := range known {
			found = found || isPrefix && strings.HasPrefix(function, name)
		}
		if !found {
			t.Errorf("SECURITY.md names %s, which does not exist", name)
		}
	}
}

// testFunctions are the names of all functions in the repository's test files.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
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
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				known[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
