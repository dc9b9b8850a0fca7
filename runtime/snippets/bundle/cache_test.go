package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// expire makes the next use of each set check its files.
func expire(p *Packages) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sets {
		s.mu.Lock()
		s.checked = time.Now().Add(-checkInterval)
		s.mu.Unlock()
	}
}

// A batch runs several programs in one process. Sets do not change, so that a program does
// the same later.
type batch struct{ names, codes, wants []string }

// add bundles a snippet, which must return the wanted value or have the wanted problems.
func (b *batch) add(t *testing.T, p *Packages, code, name, want string) {
	t.Helper()
	program, problems := bundleOne(t, p, code)
	if program == nil {
		if got := fmt.Sprint(problems); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		return
	}
	b.names, b.codes, b.wants = append(b.names, name), append(b.codes, program.Code), append(b.wants, want)
}

func (b *batch) run(t *testing.T) {
	t.Helper()
	for i, r := range nodeAll(t, b.codes) {
		if r.Error != "" || r.Value != b.wants[i] {
			t.Errorf("%s: %+v, want %s", b.names[i], r, b.wants[i])
		}
	}
}

// Packages are bundled again when a file, a link or an export changes, or when a missing
// package was installed.
func TestChangedPackages(t *testing.T) {
	folder := install(t)
	p := newPackages(t, folder)
	const dual, added, linked = "import { kind } from 'dual'; __return(kind)", "import { a } from 'added'; __return(a)",
		"import { dependency } from 'linked'; __return(dependency)"
	var later batch
	for _, step := range []struct {
		name       string
		change     func()
		code, want string
	}{
		{"start", func() {}, dual, `"module"`},
		{"missing", func() {}, added, `[src/main.ts:1:19 — cannot find package "added" in the packages of this sandbox]`},
		{"broken link", func() {}, linked, `"a dependency"`},
		{"a file with its old time and size", func() {
			name := filepath.Join(folder, "dual/index.mjs")
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			write(t, name, "export const kind = 'MODULE';\n")
			if err := os.Chtimes(name, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, dual, `"MODULE"`},
		{"another entry", func() {
			write(t, filepath.Join(folder, "dual/package.json"), `{"name": "dual", "exports": "./index.cjs"}`)
		}, dual, `"commonjs"`},
		{"another name", func() {
			write(t, filepath.Join(folder, "dual/index.cjs"), "exports.sort = 'c'")
		}, dual, `[src/main.ts:1:10 — "kind" is not exported by "dual"]`},
		{"installed", func() {
			write(t, filepath.Join(folder, "added/index.js"), "exports.a = 1")
		}, added, `1`},
		{"another link", func() {
			write(t, filepath.Join(folder, ".pnpm/linked@2/node_modules/linked/index.js"), "exports.dependency = 2")
			name := filepath.Join(folder, "linked")
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(".pnpm/linked@2/node_modules/linked", name); err != nil {
				t.Fatal(err)
			}
		}, linked, `2`},
	} {
		step.change()
		expire(p)
		later.add(t, p, step.code, step.name, step.want)
	}
	later.run(t)
}

// Another process uses the sets of the cache, and makes damaged ones again.
func TestCacheOnDisk(t *testing.T) {
	folder := install(t)
	first := newPackages(t, folder)
	manifests := first.cache.manifests
	var later batch
	use := func(name string, p *Packages) {
		expire(p)
		later.add(t, p, "import { useState } from 'react'; import { create } from 'store'; __return([typeof useState, typeof create])", name, `["function","function"]`)
	}
	another := func() *Packages {
		p, err := NewPackages(PackagesOptions{Folder: folder, Cache: filepath.Dir(first.Dir()), Names: first.names})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	use("first", first)
	stamps := stampsOf(t, manifests)
	second := another()
	use("second", second)
	if got := stampsOf(t, manifests); got != stamps {
		t.Errorf("the set was made again: %v, before %v", got, stamps)
	}
	for name, damage := range map[string]func(){
		"not JSON":  func() { write(t, filepath.Join(manifests, oneIn(t, manifests)), "{") },
		"not a set": func() { write(t, filepath.Join(manifests, oneIn(t, manifests)), `{"dir": "../../x"}`) },
		"no set":    func() { _ = os.RemoveAll(filepath.Join(first.cache.sets, oneIn(t, first.cache.sets))) },
	} {
		damage()
		use(name, second)
		use(name+", another process", another())
	}
	later.run(t)
}

// stampsOf returns the stamp of the only file in a folder.
func stampsOf(t *testing.T, folder string) [1]stamp {
	t.Helper()
	return [1]stamp{stampOf(filepath.Join(folder, oneIn(t, folder)))}
}

func oneIn(t *testing.T, folder string) string {
	t.Helper()
	list := entriesOf(folder)
	if len(list) != 1 {
		t.Fatalf("%d files in %s", len(list), folder)
	}
	return list[0].Name()
}

// All users can read sets, whatever the umask, and only the owner manifests, which name files
// of the host.
func TestModes(t *testing.T) {
	old := umask(0o077)
	defer umask(old)
	folder := install(t)
	p := newPackages(t, folder)
	if _, problems := bundleOne(t, p, "import { useState } from 'react'; useState()"); len(problems) > 0 {
		t.Fatal(problems)
	}
	err := filepath.WalkDir(p.Dir(), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		want := fs.FileMode(0o644)
		if d.IsDir() {
			want = fs.ModeDir | 0o755
		}
		if err == nil && info.Mode() != want {
			t.Errorf("%s: %v", name, info.Mode())
		}
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), folder) {
			t.Errorf("%s contains the path of the packages", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(p.cache.manifests); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestEvict(t *testing.T) {
	c, err := openCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.maxBytes = 250_000
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"a": 4 * keepTime, "b": 3 * keepTime, "c": 2 * keepTime, "used": keepTime / 2,
		temporary + "old": 2 * abandonedTime, temporary + "current": abandonedTime / 2,
	} {
		folder := filepath.Join(c.sets, name)
		write(t, filepath.Join(folder, "x.js"), strings.Repeat("x", 100_000))
		if err := os.Chtimes(folder, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	c.evict(now)
	var left []string
	for _, e := range entriesOf(c.sets) {
		left = append(left, e.Name())
	}
	if got, want := strings.Join(left, " "), temporary+"current c used"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
}

// Several processes make the same set and others together, and none fails.
func TestConcurrentProcesses(t *testing.T) {
	folder, cache := install(t), t.TempDir()
	var wg sync.WaitGroup
	for i := range 12 {
		p, err := NewPackages(PackagesOptions{Folder: folder, Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		p.cache.maxBytes = 1
		wg.Go(func() {
			for _, code := range []string{"import 'store'; import 'dual'", []string{"import 'react'", "import 'data'"}[i%2]} {
				_, problems, err := Bundle(t.Context(), []File{{"src/main.ts", code}}, Options{Packages: p, Mount: p.Dir(), Run: inProcess})
				if err != nil || len(problems) > 0 {
					t.Error(problems, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(entriesOf(filepath.Join(cache, "sets"))); n != 3 {
		t.Errorf("%d sets", n)
	}
	if n := len(entriesOf(filepath.Join(cache, "manifests"))); n != 3 {
		t.Errorf("%d manifests", n)
	}
}

// The sets and names in memory are bounded, whatever snippets import.
func TestMemoryIsBounded(t *testing.T) {
	p, err := NewPackages(PackagesOptions{Folder: install(t), Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxMemory {
		p.remember(fmt.Sprint(i), &set{Entries: map[string]Entry{fmt.Sprint("a", i): {}, fmt.Sprint("b", i): {}}, checked: time.Unix(int64(i), 0)})
	}
	if len(p.sets) != maxMemory || p.sets["0"] != nil || p.sets[fmt.Sprint(3*maxMemory-1)] == nil {
		t.Errorf("%d sets", len(p.sets))
	}
	var code strings.Builder
	for i := range maxImports + 1 {
		fmt.Fprintf(&code, "import 'store/%d';", i)
	}
	if _, problems := bundleOne(t, p, code.String()); len(problems) != 1 || problems[0].Message != "more than 64 packages are imported" {
		t.Errorf("%v", problems)
	}
}

// Building a set takes a limited time, and ends with the caller's context. The pipe has no writer: esbuild waits for one.
func TestBuildTime(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "slow", "package.json"), "{}")
	pipe := filepath.Join(folder, "slow", "index.js")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() {
		if f, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
			_ = f.Close()
		}
	}
	t.Cleanup(open)
	p := newPackages(t, folder)
	build := func(ctx context.Context) error {
		_, _, err := Bundle(ctx, []File{{EntryPath, "import 'slow'"}}, Options{Packages: p, Mount: p.Dir(), Run: inProcess})
		return err
	}
	cause := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if err := build(ctx); !errors.Is(err, cause) {
		t.Error(err)
	}
	if err := build(ctx); !errors.Is(err, cause) { // it has ended before the set's turn
		t.Error(err)
	}
	p.maxBuildTime = 20 * time.Millisecond
	if err := build(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	open()
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	write(t, pipe, "export {}")
	p.maxBuildTime = time.Minute
	if err := build(t.Context()); err != nil {
		t.Error(err)
	}
}
