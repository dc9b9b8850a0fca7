package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const secret = "0123456789abcdef0123456789abcdef"

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func TestTokenFile(t *testing.T) {
	good := "ci " + hashOf(secret) + "\n"
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		uid  int
		ok   bool
	}{
		"good":          {good, 0o600, 0, true},
		"group reads":   {"# comment\n\n" + good + "ops " + hashOf("b") + " admin\n", 0o640, 0, true},
		"others read":   {good, 0o644, 0, false},
		"group writes":  {good, 0o660, 0, false},
		"others write":  {good, 0o602, 0, false},
		"of a user":     {good, 0o600, 61001, false},
		"empty":         {"# nothing\n", 0o600, 0, false},
		"twice":         {good + good, 0o600, 0, false},
		"plain token":   {"ci " + secret + "\n", 0o600, 0, false},
		"short hash":    {"ci " + hashOf(secret)[:62] + "\n", 0o600, 0, false},
		"upper name":    {"CI " + hashOf(secret) + "\n", 0o600, 0, false},
		"name of a uid": {"uid:0 " + hashOf(secret) + "\n", 0o600, 0, false},
		"name with ../": {"../x " + hashOf(secret) + "\n", 0o600, 0, false},
		"unknown right": {"ci " + hashOf(secret) + " root\n", 0o600, 0, false},
		"NUL":           {"ci\x00 " + hashOf(secret) + "\n", 0o600, 0, false},
		"huge":          {good + strings.Repeat("#\n", maxTokenFile), 0o600, 0, false},
	} {
		path := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, c.uid, c.uid); err != nil {
			t.Skip("needs root: ", err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		tokens, err := ReadTokens(path)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), hashOf(secret))) {
			t.Errorf("%s: the error has the secret: %v", name, err)
		}
		if err == nil && tokens.Find(secret) == nil {
			t.Errorf("%s: the token is not found", name)
		}
	}
	if _, err := ReadTokens(t.TempDir()); err == nil {
		t.Error("a folder is read")
	}
}

// Tenants with removed tokens cannot exist. Local users can, and all tenants on a machine without tokens.
func TestKnows(t *testing.T) {
	tokens, err := parseTokens("ci " + hashOf(secret) + "\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"token:ci": true, "token:c": false, "token:": false, "token:uid:0": false, "uid:0": true, "uid:0@abc": true, "anonymous": true} {
		if tokens.Knows(name) != want || !(*Tokens)(nil).Knows(name) {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
}

func TestFind(t *testing.T) {
	tokens, err := parseTokens("a " + hashOf(secret) + "\nb " + hashOf(secret+"b") + " admin\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		secret: "token:a", secret + "b": "token:b", secret + "c": "", "": "", secret[:31]: "", hashOf(secret): "", secret + " ": "", strings.Repeat("x", maxToken+1): "", strings.ToUpper(secret): "",
	} {
		got := ""
		if found := tokens.Find(text); found != nil {
			if got = found.Name; found.Peer != nil || found.Admin != (got == "token:b") {
				t.Errorf("%+v", found)
			}
		}
		if got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

// The time of Find depends on the length of a token only: it compares all tokens, each in constant time.
// Measuring this would need millions of samples on an idle machine.
func TestFindComparesAll(t *testing.T) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "tenant.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	loops, compares := 0, 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Find" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			loop, ok := n.(*ast.RangeStmt)
			if !ok {
				return true
			}
			loops++
			ast.Inspect(loop.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BranchStmt, *ast.ReturnStmt:
					t.Errorf("the loop may end early: %T", n)
				case *ast.SelectorExpr:
					if n.Sel.Name == "ConstantTimeCompare" {
						compares++
					}
				}
				return true
			})
			return true
		})
	}
	if loops != 1 || compares != 1 {
		t.Errorf("%d loops, %d comparisons", loops, compares)
	}
}
