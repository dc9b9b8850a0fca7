package docs

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/test/tier"
)

// imports are the packages that blocks use without importing them, by name.
var imports = map[string]string{
	"context": "context", "errors": "errors", "fmt": "fmt", "fs": "io/fs", "io": "io", "json": "encoding/json", "log": "log",
	"http": "net/http", "os": "os", "strings": "strings", "syscall": "syscall", "time": "time",
	"client": "gaol/runtime/client", "hostfs": "gaol/vfs/hostfs", "policy": "gaol/policy", "rootfs": "gaol/rootfs", "runtime": "gaol/runtime",
	"sandboxtools": "gaol/runtime/sandboxtools", "snippets": "gaol/runtime/snippets", "lint": "gaol/runtime/snippets/lint",
}

// Each block of Go is a package. It exists only in go's overlay.
func TestGoBlocksCompile(t *testing.T) {
	tier.Soak(t)
	dir, root := t.TempDir(), abs(t, repo)
	overlay := map[string]map[string]string{"Replace": {}}
	for i, b := range allBlocks(t, "go") {
		code, err := program(b)
		if err != nil {
			t.Errorf("%v: %v", b, err)
			continue
		}
		name := fmt.Sprintf("block%d", i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(root, "test/docs/blocks", name, "block.go")] = filepath.Join(dir, name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", file, "./test/docs/blocks/...")
	cmd.Dir = repo
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// program completes a block: a whole file, declarations, or statements.
func program(b block) (string, error) {
	const (
		header   = "package block\n"
		function = "func block(ctx context.Context, rt *runtime.NodeRuntime, code string, data []byte) error {\n{\n"
		end      = "}\nreturn nil\n}\n"
	)
	text := fmt.Sprintf("//line %s:%d\n%s//line generated:1\n", b.page, b.line, b.text)
	if rest, ok := strings.CutPrefix(b.text, "package main\n"); ok {
		return header + rest, nil // no main package: there is nothing to link
	}
	if file, err := parse(header + text); err == nil {
		return header + importLines(file) + text, nil
	}
	file, err := parse(header + function + text + end)
	if err != nil {
		return "", err
	}
	var uses strings.Builder
	body := file.Decls[0].(*ast.FuncDecl).Body.List[0].(*ast.BlockStmt)
	for _, name := range defined(body.List) {
		fmt.Fprintf(&uses, "_ = %s\n", name)
	}
	return header + importLines(file) + function + text + uses.String() + end, nil
}

func parse(text string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), "", text, 0)
}

// defined lists the variables that statements define, which a block need not use.
func defined(list []ast.Stmt) []string {
	var names []string
	for _, s := range list {
		a, ok := s.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE {
			continue
		}
		for _, e := range a.Lhs {
			if id, ok := e.(*ast.Ident); ok && id.Name != "_" && !slices.Contains(names, id.Name) {
				names = append(names, id.Name)
			}
		}
	}
	return names
}

// importLines imports the packages that a file uses.
func importLines(file *ast.File) string {
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && id.Obj == nil {
				used[id.Name] = true
			}
		}
		return true
	})
	var lines strings.Builder
	for name, path := range imports {
		if used[name] {
			fmt.Fprintf(&lines, "import %q\n", path)
		}
	}
	return lines.String()
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
