package examplecheck

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// write makes a folder with files, by their paths. Text that begins with -> makes a link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		if target, link := strings.CutPrefix(text, "-> "); link && err == nil {
			err = os.Symlink(target, p)
		} else if err == nil {
			err = os.WriteFile(p, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// found describes what Find has found, with paths below dir.
func found(t *testing.T, dir string, paths ...string) (lines []string) {
	t.Helper()
	for i := range paths {
		paths[i] = filepath.Join(dir, paths[i])
	}
	s, err := Find(t.Context(), paths, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, e := range s.Examples {
		rel, err := filepath.Rel(dir, e.File)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s:%d %s", rel, e.Line, e.Name)
		for _, f := range e.Files {
			line += " " + f.Path
		}
		lines = append(lines, strings.TrimSpace(line+strings.ReplaceAll(e.Fault, dir+"/", "")))
	}
	return lines
}

func TestFind(t *testing.T) {
	dir := write(t, map[string]string{
		"a.ts": "1", "b.tsx": "1", "c.d.ts": "1", "d.json": "1", "e.expected.json": "{}",
		"g/x.md": "```ts run\n1\n```\n", "g/y.mdx": "```ts run\n1\n```\n", "g/z.txt": "```ts run\n1\n```\n",
		"node_modules/n/i.js": "1", ".git/h.js": "1", "large.js": strings.Repeat("1", maxCode+1),
		"p/src/main.ts": "1", "p/src/b/c.ts": "2", "p/src/data.json": "{}", "p/src/main.ts.expected.json": "{}", "p/src/node_modules/m.ts": "3",
		"p/vite.config.ts": "4", "p/README.md": "```ts run\n1\n```\n", "p2/x.js": "1",
	})
	want := []string{
		"a.ts:1  src/main.ts", "b.tsx:1  src/main.ts",
		"g/x.md:1 #1 src/main.ts", "g/y.mdx:1 #1 src/main.ts",
		"large.js:1 large.js has more than 200000 bytes",
		"p/src/main.ts:1  src/b/c.ts src/data.json src/main.ts", "p/README.md:1 #1 src/main.ts", "p2/x.js:1  src/main.ts",
	}
	if diff := cmp.Diff(want, found(t, dir, ".")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"g/x.md:1 #1 src/main.ts", "a.ts:1  src/main.ts"}, found(t, dir, "g/x.md", "a.ts")); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}

// Links, pipes and folders with the names of files are not read.
func TestFindHostile(t *testing.T) {
	outside := write(t, map[string]string{"secret.ts": "1", "src/main.ts": "1"})
	dir := write(t, map[string]string{
		"a.ts": "1", "link.ts": "-> " + outside + "/secret.ts", "linked": "-> " + outside, "inside.ts": "-> a.ts",
		"p/src/main.ts": "1", "p/src/link.ts": "-> " + outside + "/secret.ts", "q/src/main.ts": "-> " + outside + "/secret.ts",
		"folder.ts/x.txt": "1", "r/src": "-> " + outside + "/src",
	})
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.ts"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.ts:1  src/main.ts", "p/src/main.ts:1  src/main.ts"}, found(t, dir, ".")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A link that the user names is another matter.
	if diff := cmp.Diff([]string{"a.ts:1  src/main.ts"}, found(t, dir, "inside.ts")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"link.ts", "pipe.ts", "linked/secret.ts", "folder.ts"} {
		if b, err := readRegular(root, name, 9); err == nil {
			t.Errorf("%s was read: %q", name, b)
		}
	}
}

func TestFindErrors(t *testing.T) {
	dir := write(t, map[string]string{"x.txt": "1"})
	for name, want := range map[string]string{"x.txt": "want a folder, or a file that ends in .ts, ", "none": "no such file"} {
		if _, err := Find(t.Context(), []string{filepath.Join(dir, name)}, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, []string{dir}, false); err == nil {
		t.Error("Find ignores its context")
	}
	s := &Set{bytes: maxTotal}
	f, _, err := s.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.read(f, "x.txt", 9); err == nil || !strings.Contains(err.Error(), "check fewer together") {
		t.Errorf("any number of bytes: %v", err)
	}
}

func TestExpectedFile(t *testing.T) {
	outside := write(t, map[string]string{"secret": "1"})
	dir := write(t, map[string]string{"d/a.ts": "1", "d/b.ts": "1", "d/b.ts.expected.json": "-> " + outside + "/secret"})
	s, err := Find(t.Context(), []string{dir + "/d/a.ts", dir}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if len(s.Examples) != 3 {
		t.Fatalf("%d examples", len(s.Examples))
	}
	if _, err := s.Examples[0].ReadExpected(); !os.IsNotExist(err) {
		t.Errorf("a file that does not exist: %v", err)
	}
	if b, err := s.Examples[2].ReadExpected(); err == nil {
		t.Errorf("a link was followed: %q", b)
	}
	for _, e := range []*Example{s.Examples[0], s.Examples[2]} {
		if err := e.WriteExpected([]byte("2")); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := s.Examples[1].ReadExpected(); string(b) != "2" || err != nil { // by the other path
		t.Errorf("%q, %v", b, err)
	}
	entries, err := os.ReadDir(dir + "/d")
	if b, _ := os.ReadFile(outside + "/secret"); string(b) != "1" || len(entries) != 4 || err != nil {
		t.Errorf("outside: %q; files: %v, %v", b, entries, err)
	}
	if info, err := os.Lstat(dir + "/d/b.ts.expected.json"); err != nil || info.Mode()&fs.ModeType != 0 {
		t.Errorf("%v, %v", info, err)
	}
}
