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

// Lists of the Makefile: names of tests, and of folders.
var makeList = regexp.MustCompile(`(?m)^(SOAK|LEAKS|REPEATED|SLOW|LATE|JUDGES) := ((?:.*\\\n)*.*)$`)

// Every test that make test leaves out exists, so that make soak runs it.
func TestMakefileNamesTests(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	lists := makeList.FindAllStringSubmatch(string(text), -1)
	if len(lists) != 6 {
		t.Fatalf("%d lists, want 6", len(lists))
	}
	known := testFunctions(t)
	for _, list := range lists {
		for _, name := range strings.Fields(strings.ReplaceAll(list[2], "\\", "")) {
			var found bool
			if list[1] == "LATE" {
				_, err := os.Stat("../" + name)
				found = err == nil
			} else {
				name, isPrefix := strings.CutSuffix(name, ".*")
				found = anyTest(known, name, isPrefix)
			}
			if !found {
				t.Errorf("%s names %s, which does not exist", list[1], name)
			}
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
