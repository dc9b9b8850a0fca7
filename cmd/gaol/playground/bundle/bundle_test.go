package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"gaol/cmd/gaol/playground"
	"gaol/rootfs/download"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a page with its packages.
type source struct {
	dir      string
	packages map[string]map[string]string // files by package
	requests atomic.Int64                 // to the registry
}

const license = "Permission is granted by @scope/editor"

// newSource writes a page that uses two packages, of which one uses the other.
func newSource(t *testing.T) *source {
	t.Helper()
	s := &source{dir: t.TempDir(), packages: map[string]map[string]string{
		"@scope/editor": {
			"package.json": `{"name": "@scope/editor", "version": "1.0.0", "license": "MIT", "main": "main.js"}`,
			"main.js":      `import { text } from 'words'; export function edit() { return 'edit ' + text }`, "LICENSE": license,
		},
		"words": {
			"package.json": `{"name": "words", "version": "1.0.0", "license": "ISC", "main": "main.js"}`,
			"main.js":      "/*! by the authors of words */\nexport const text = 'some words'", "license.md": "Words licence",
		},
	}}
	for name, text := range map[string]string{
		"index.html": "<meta content={{nonce}}>", "src/style.css": "p { color: red }", "src/embed.ts": "console.log(document.currentScript as Element)",
		"src/main.ts": `import { edit } from '@scope/editor'; const text: string = edit(); console.log(text)`,
		// What npm has installed beside the page is not used.
		"node_modules/words/package.json": `{"main": "main.js"}`, "node_modules/words/main.js": `export const text = 'other words'`,
		"node_modules/@scope/editor/package.json": `{"main": "main.js"}`, "node_modules/@scope/editor/main.js": `export const edit = () => 'other editor'`,
	} {
		write(t, filepath.Join(s.dir, name), text)
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tarball packs files as npm does.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// publish starts a registry with the packages, and writes the lock file.
func (s *source) publish(t *testing.T) {
	t.Helper()
	served := map[string][]byte{}
	locked := map[string]any{"": map[string]any{}, "node_modules/only-for-tests": map[string]any{"version": "1.0.0", "integrity": "sha512-", "dev": true}}
	for name, files := range s.packages {
		content := tarball(t, files)
		sum := sha512.Sum512(content)
		served["/"+name+"/-/"+path.Base(name)+"-1.0.0.tgz"] = content
		locked["node_modules/"+name] = map[string]any{"version": "1.0.0", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if content, ok := served[r.URL.Path]; ok {
			_, _ = w.Write(content)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(registry.Close)
	t.Setenv("npm_config_registry", registry.URL)
	text, err := json.Marshal(map[string]any{"lockfileVersion": 3, "packages": locked})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.dir, "package-lock.json"), string(text))
}

// The page is made of its source and of the packages of the lock file only.
func TestBundle(t *testing.T) {
	s := newSource(t)
	s.publish(t)
	b := &bundler{page: s.dir, downloads: t.TempDir()}
	first := bundle(t, b)
	if got := s.requests.Load(); got != int64(len(s.packages)) {
		t.Errorf("%d requests", got)
	}
	main := string(first["main.js"])
	if !strings.Contains(main, "some words") || strings.Contains(main, "other") || strings.Contains(main, ": string") {
		t.Errorf("main.js: %q", main)
	}
	if got := string(first["embed.js"]); !strings.HasPrefix(got, "(()=>{") && !strings.HasPrefix(got, `"use strict";(()=>{`) {
		t.Errorf("embed.js is no plain script: %q", got)
	}
	if got := string(first["style.css"]); got != "p{color:red}\n" {
		t.Errorf("style.css: %q", got)
	}
	for _, want := range []string{"@scope/editor 1.0.0 (MIT)", license, "words 1.0.0 (ISC)", "Words licence", "by the authors of words"} {
		if got := string(first["licenses.txt"]); !strings.Contains(got, want) {
			t.Errorf("licenses.txt has no %q:\n%s", want, got)
		}
	}
	t.Setenv("npm_config_registry", "http://127.0.0.1:1") // a second time it needs no registry
	for name, text := range bundle(t, b) {
		if !bytes.Equal(text, first[name]) {
			t.Errorf("%s differs the second time", name)
		}
	}
}

func bundle(t *testing.T, b *bundler) map[string][]byte {
	t.Helper()
	files, err := b.bundle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(playground.Files) {
		t.Errorf("%d files, want %q", len(files), playground.Files)
	}
	return files
}

func TestBundleFails(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, s *source)
		want  string
	}{
		"no licence":  {func(_ *testing.T, s *source) { delete(s.packages["words"], "license.md") }, "node_modules/words: licence: file does not exist"},
		"no nonce":    {func(t *testing.T, s *source) { write(t, s.dir+"/index.html", "<p>") }, "index.html has no {{nonce}}"},
		"syntax":      {func(t *testing.T, s *source) { write(t, s.dir+"/src/main.ts", "const = 1") }, "Expected identifier but found \"=\""},
		"not locked":  {func(t *testing.T, s *source) { write(t, s.dir+"/src/main.ts", "import 'unknown'") }, "Could not resolve \"unknown\""},
		"only beside": {func(_ *testing.T, s *source) { delete(s.packages, "words") }, "Could not resolve \"words\""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t)
			tc.spoil(t, s)
			s.publish(t)
			b := &bundler{page: s.dir, downloads: t.TempDir()}
			if _, err := b.bundle(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// A package whose tarball is not the locked one is not used.
func TestIntegrity(t *testing.T) {
	s := newSource(t)
	s.publish(t)
	lock := filepath.Join(s.dir, "package-lock.json")
	s.packages["words"]["main.js"] = "export const text = 'evil words'"
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	s.publish(t)
	write(t, lock, string(text))
	b := &bundler{page: s.dir, downloads: t.TempDir()}
	if _, err := b.bundle(t.Context()); err == nil || !strings.Contains(err.Error(), download.ErrIntegrity.Error()) {
		t.Errorf("error %v", err)
	}
}

func TestReadLock(t *testing.T) {
	sum := sha512.Sum512(nil)
	good := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	for name, tc := range map[string]struct{ lock, want string }{
		"nested":          {lockOf("node_modules/a/node_modules/@b/c", good, ""), "@b/c@1.0.0 in node_modules/a/node_modules/@b/c"},
		"alias":           {lockOf("node_modules/a", good, "b"), "b@1.0.0 in node_modules/a"},
		"other version":   {`{"lockfileVersion": 2}`, "lockfileVersion 2: want 3"},
		"not JSON":        {`{`, "unexpected end of JSON input"},
		"no hash":         {lockOf("node_modules/a", "", ""), "no sha512"},
		"weak hash":       {lockOf("node_modules/a", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", ""), "no sha512"},
		"above":           {lockOf("node_modules/../../a", good, ""), "unsupported"},
		"absolute":        {lockOf("/node_modules/a", good, ""), "unsupported"},
		"a folder":        {lockOf("packages/a", good, ""), "unsupported"},
		"name is a path":  {lockOf("node_modules/a", good, "../b"), "unsupported"},
		"name is a query": {lockOf("node_modules/a", good, "b?c"), "unsupported"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "package-lock.json")
			write(t, path, tc.lock)
			list, err := readLock(path)
			got := fmt.Sprint(err)
			if err == nil && len(list) == 1 {
				got = list[0].String() + " in " + list[0].folder
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func lockOf(folder, integrity, name string) string {
	return fmt.Sprintf(`{"lockfileVersion": 3, "packages": {"": {}, %q: {"name": %q, "version": "1.0.0", "integrity": %q}}}`, folder, name, integrity)
}

// The overlay keeps what others have added.
func TestOverlay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "overlay.json")
	write(t, path, `{"Replace": {"/src/enter": "/bin/enter"}}`)
	if err := addToOverlay(path, "/src/built", "/bin/page"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got overlay
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Replace["/src/enter"] != "/bin/enter" || len(got.Replace) != 1+len(playground.Files) {
		t.Errorf("%v", got.Replace)
	}
	for _, name := range playground.Files {
		if got.Replace["/src/built/"+name] != "/bin/page/"+name {
			t.Errorf("%s is replaced by %q", name, got.Replace["/src/built/"+name])
		}
	}
	write(t, path, "{")
	if err := addToOverlay(path, "/src/built", "/bin/page"); err == nil {
		t.Error("a damaged overlay was replaced")
	}
}

// A page that lacks a file is not written as if it were whole.
func TestWriteFiles(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range playground.Files {
		files[name] = []byte(name)
	}
	if err := writeFiles(filepath.Join(t.TempDir(), "page"), files); err != nil {
		t.Error(err)
	}
	files["main.js"] = nil
	if err := writeFiles(filepath.Join(t.TempDir(), "page"), files); err == nil || !strings.Contains(err.Error(), "main.js") {
		t.Errorf("error %v", err)
	}
}
