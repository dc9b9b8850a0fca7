package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// links are the symbolic links in the folder of packages.
var links = map[string]string{
	"linked":                                 ".pnpm/linked@1/node_modules/linked",
	".pnpm/linked@1/node_modules/dependency": "../../dependency@1/node_modules/dependency",
	"outside":                                "../../outside",
}

// install writes the packages of testdata to a new folder.
func install(t testing.TB) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/packages.txtar")
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	folder := filepath.Join(top, "app", "node_modules")
	for _, f := range archive.Files {
		write(t, filepath.Join(folder, f.Name), string(f.Data))
	}
	write(t, filepath.Join(top, "outside", "index.js"), "exports.a = 1")
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newPackages returns the packages of a folder, with their names by Node.
func newPackages(t testing.TB, folder string) *Packages {
	t.Helper()
	cache := t.TempDir()
	p, err := NewPackages(PackagesOptions{Folder: folder, Cache: cache, Names: func(ctx context.Context, module string) ([]string, error) {
		return namesOf(t, filepath.Join(cache, "sets", module))
	}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// knownNames are the results of namesOf by the content of the module: starting Node takes
// most of the time of these tests.
var knownNames sync.Map

func namesOf(t testing.TB, module string) (names []string, err error) {
	t.Helper()
	code, err := os.ReadFile(module)
	if err != nil {
		return nil, err
	}
	text, known := knownNames.Load(string(code))
	if !known {
		if text, err = node(t, NamesProgram(module)); err != nil {
			return nil, nil // such a module exports no names
		}
		knownNames.Store(string(code), text)
	}
	return names, json.Unmarshal([]byte(text.(string)), &names) // only strings are stored
}

// node runs an ES module of this test with the machine's Node, and returns the JSON of what
// it passes to __return. Other tests run programs in sandboxes.
func node(t testing.TB, code string) (string, error) {
	t.Helper()
	r := nodeAll(t, []string{code})[0]
	return r.Value, r.err()
}

// nodeAll runs modules in one process, each in a separate thread.
func nodeAll(t testing.TB, codes []string) (results []nodeResult) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		node = "/var/lib/gaol/names/default/rootfs/usr/local/bin/node" // the default image's, as in .ci/npm
	}
	folder := t.TempDir()
	names := make([]string, len(codes))
	for i, code := range codes {
		names[i] = filepath.Join(folder, fmt.Sprint(i, ".mjs"))
		write(t, names[i], "import { parentPort } from 'node:worker_threads';globalThis.__return = (v) => parentPort.postMessage(JSON.stringify(v));"+code)
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{"-e", workers, "--"}, names...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &results)
	}
	if err != nil || len(results) != len(codes) {
		t.Fatalf("%d results: %v", len(results), err)
	}
	return results
}

type nodeResult struct{ Value, Error string }

func (r nodeResult) err() error {
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// workers runs the modules that are its arguments.
const workers = `
const { Worker } = require('node:worker_threads');
Promise.all(process.argv.slice(1).map((file) => new Promise((done) => {
  const result = { Value: '', Error: '' };
  new Worker(file, { execArgv: [] })
    .on('message', (value) => { result.Value = value })
    .on('error', (error) => { result.Error = String(error) })
    .on('exit', () => done(result));
}))).then((results) => console.log(JSON.stringify(results)));
`

// bundleOne bundles src/main.ts.
func bundleOne(t testing.TB, p *Packages, code string) (*Program, []Problem) {
	t.Helper()
	return bundleFiles(t, Options{Packages: p}, File{"src/main.ts", code})
}

// inProcess is for Options.Run.
func inProcess(_ context.Context, j Job) (Built, error) { return j.Run(), nil }

func bundleFiles(t testing.TB, o Options, files ...File) (*Program, []Problem) {
	t.Helper()
	o.Run = inProcess
	if o.Packages != nil {
		o.Mount = o.Packages.Dir()
	}
	program, problems, err := Bundle(t.Context(), files, o)
	if err != nil {
		t.Fatal(err)
	}
	if (program == nil) != (len(problems) > 0) {
		t.Fatalf("program %v, problems %v", program, problems)
	}
	return program, problems
}

func TestPackages(t *testing.T) {
	p := newPackages(t, install(t))
	cases := []struct{ name, code, want string }{
		{"module", `import { create } from 'store'; __return(create(1).get())`, `1`},
		{"live binding", `import { count, increment } from 'store'; increment(); __return(count)`, `1`},
		{"subpath", `import create from 'store/vanilla'; __return(create(2).get())`, `2`},
		{"shared instance", `import { increment, instances } from 'store'; import { same } from 'store-extras'; import { view } from '@scope/views';
			__return([same(increment), view() === increment, instances, globalThis.__instances])`, `[true,true,1,1]`},
		{"export star", `import { create } from 'store-extras'; __return(create(3).get())`, `3`},
		{"export star of CommonJS", `import d, { own, useState, named, mode } from 'reexports'; __return([d, own, useState(1), named, mode])`, `["the default",1,[1],"named","development"]`},
		{"export star of Node", `import { basename } from 'reexports/more'; __return(basename('/a/b'))`, `"b"`},
		{"namespace", `import * as s from 'store'; __return(Object.keys(s))`, `["count","create","increment","instances"]`},
		{"CommonJS", `import React, { useState, file, lazy, mode } from 'react'; __return([useState(1), React.useState === useState, file, lazy, mode])`, `[[1],true,"string","lazy","development"]`},
		{"CommonJS that requires Node", `import { createElement } from 'react'; __return(createElement('a').EOL)`, `"string"`},
		{"transpiled", `import d, { named } from 'transpiled'; __return([d, named])`, `["the default","named"]`},
		{"dual", `import { kind } from 'dual'; __return(kind)`, `"module"`},
		{"JSON", `import data from 'data'; __return(data.answer)`, `42`},
		{"links", `import { dependency } from 'linked'; __return(dependency)`, `"a dependency"`},
		{"only effects", `import 'store'; __return(globalThis.__instances)`, `1`},
		{"import()", `const { kind } = await import('dual'); __return(kind)`, `"module"`},
		{"types", `import { State } from 'store'; import type { T } from 'not-there'; const s: State = 1; __return(s)`, `1`},
		{"Node", `import { basename } from 'path'; import fs from 'node:fs'; __return([basename('/a/b'), typeof fs.readFileSync])`, `["b","function"]`},
	}
	codes := make([]string, len(cases))
	for i, tc := range cases {
		program, problems := bundleOne(t, p, tc.code)
		if program == nil {
			t.Fatalf("%s: %v", tc.name, problems)
		}
		codes[i] = program.Code
	}
	for i, r := range nodeAll(t, codes) {
		if tc := cases[i]; r.Error != "" || r.Value != tc.want {
			t.Errorf("%s: %+v, want %s, of\n%s", tc.name, r, tc.want, codes[i])
		}
	}
}

func TestProblemsOfPackages(t *testing.T) {
	p := newPackages(t, install(t))
	const missing = `cannot find package %q in the packages of this sandbox`
	for _, tc := range []struct{ name, code, want string }{
		{"missing", "\nimport a from 'nope'; a()", "2:15 " + fmt.Sprintf(missing, "nope")},
		{"missing scope", "import a from '@nope/a'; a()", "1:15 " + fmt.Sprintf(missing, "@nope/a")},
		{"missing subpath", "import { hidden } from 'store/hidden'; hidden()", "1:24 " + fmt.Sprintf(missing, "store/hidden")},
		{"missing subpath with a file", "import { hidden } from 'store/hidden.js'; hidden()", "1:24 " + fmt.Sprintf(missing, "store/hidden.js")},
		{"outside", "import { a } from 'outside'; a()", "1:19 " + fmt.Sprintf(missing, "outside") + ": it has files outside their folder"},
		{"missing dependency", "import 'needs-missing'", "1:8 " + fmt.Sprintf(missing, "not-installed") + ", which needs-missing/index.js imports"},
		{"broken", "import 'store'; import 'broken'", `1:24 package "broken": broken/index.js:1: Unexpected ";"`},
		{"wrong name", "/* 😀 */ import { nope } from 'store'; nope()", `1:19 "nope" is not exported by "store"`},
		{"wrong name of CommonJS", "import { useStat } from 'react'; useStat()", `1:10 "useStat" is not exported by "react"`},
		{"wrong name of a namespace", "import { useStat } from 'reexports'; useStat()", `1:10 "useStat" is not exported by "reexports"`},
		{"no default", "import store from 'store'; store()", `1:8 "default" is not exported by "store"`},
		{"path", "import a from '/etc/passwd'; a()", `1:15 cannot import "/etc/passwd": use a relative path, a package or a module of Node`},
		{"URL", "import a from 'file:///etc/passwd'; a()", `1:15 cannot import "file:///etc/passwd": use a relative path, a package or a module of Node`},
		{"parent", "import a from 'store/../../secret'; a()", `1:15 cannot import "store/../../secret": use a relative path, a package or a module of Node`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, problems := bundleOne(t, p, tc.code)
			if len(problems) != 1 {
				t.Fatalf("%d problems: %v", len(problems), problems)
			}
			if got := fmt.Sprintf("%d:%d %s", problems[0].Line, problems[0].Column, problems[0].Message); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// Several problems are reported together, although the packages are new.
func TestSeveralProblems(t *testing.T) {
	p := newPackages(t, install(t))
	_, problems := bundleOne(t, p, "import 'nope'; import { x } from './x.js'; import { nope } from 'store'; x(nope)")
	if len(problems) < 2 || !slices.ContainsFunc(problems, func(p Problem) bool { return p.Message == `cannot find "./x.js"` }) {
		t.Errorf("%v", problems)
	}
}

// A module that throws exports no names; then any may be imported, and the program throws.
func TestNamesUnknown(t *testing.T) {
	folder := install(t)
	p := newPackages(t, folder)
	program, problems := bundleOne(t, p, "import { b } from 'throws'; b()")
	if program == nil {
		t.Fatal(problems)
	}
	if _, err := node(t, program.Code); err == nil || !strings.Contains(err.Error(), "Error: no") {
		t.Errorf("%v", err)
	}
	p, err := NewPackages(PackagesOptions{Folder: folder, Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	program, problems = bundleOne(t, p, "import React, { useState, nope } from 'react'; __return([typeof React.mode, typeof useState, typeof nope])")
	if program == nil {
		t.Fatal(problems)
	}
	if got, err := node(t, program.Code); got != `["string","function","undefined"]` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFolder(t *testing.T) {
	folder := install(t)
	link := filepath.Join(t.TempDir(), "packages")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	renamed := filepath.Join(t.TempDir(), "renamed")
	write(t, filepath.Join(renamed, "a", "index.js"), "import { b } from 'b'; export const a = b")
	write(t, filepath.Join(renamed, "b", "index.js"), "export const b = 1")
	for name, code := range map[string]string{
		link:                 "import 'store-extras'",
		filepath.Dir(folder): "import 'store-extras'",
		renamed:              "import { a } from 'a'; a()",
	} {
		p, err := NewPackages(PackagesOptions{Folder: name, Cache: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := bundleOne(t, p, code); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	for _, name := range []string{"", filepath.Join(folder, "nope"), filepath.Join(folder, "store/index.js")} {
		if _, err := NewPackages(PackagesOptions{Folder: name, Cache: t.TempDir()}); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestJSX(t *testing.T) {
	p := newPackages(t, install(t))
	files := []File{
		{"src/main.ts", "import { a } from './a.js'; __return(a)"},
		{"src/a.tsx", "export const a = <b c={1} />"},
	}
	program, problems := bundleFiles(t, Options{Packages: p}, files...)
	if program == nil {
		t.Fatal(problems)
	}
	if got, err := node(t, program.Code); got != `{"jsx":"b","props":{"c":1}}` {
		t.Errorf("%s, %v", got, err)
	}
	// TypeScript may have JSX, too, unless it is valid without: <T> is not valid in TSX.
	files = []File{{"src/main.ts", "import { a } from './a'; const b = <T>(x: T) => x; __return(a(b))"}, {"src/a.ts", "export const a = (f) => f(<b c={1} />)"}}
	program, problems = bundleFiles(t, Options{Packages: p}, files...)
	if program == nil {
		t.Fatal(problems)
	}
	if got, err := node(t, program.Code); got != `{"jsx":"b","props":{"c":1}}` {
		t.Errorf("%s, %v", got, err)
	}
	files = []File{{"src/main.ts", "import { a } from './a.js'; __return(a)"}, {"src/a.tsx", "export const a = <b c={1} />"}}
	files[1].Source = "const React = { createElement: (...a) => a };" + files[1].Source
	program, problems = bundleFiles(t, Options{}, files...)
	if program == nil {
		t.Fatal(problems)
	}
	if got, err := node(t, program.Code); got != `["b",{"c":1}]` {
		t.Errorf("%s, %v", got, err)
	}
}
