package snippet

import (
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

func TestSyntaxOf(t *testing.T) {
	for code, want := range map[string]Syntax{
		``:                                  {},
		`console.log(this)`:                 {},
		`require('fs')`:                     {CommonJS: true},
		`module.exports = 1`:                {CommonJS: true},
		`exports.a = 1`:                     {CommonJS: true},
		`print(__filename)`:                 {CommonJS: true},
		`f({ __dirname })`:                  {CommonJS: true},
		"`${require('fs')}`":                {CommonJS: true},
		`typeof require`:                    {CommonJS: true},
		`return require('a')`:               {CommonJS: true},
		"#!/usr/bin/env node\nrequire('a')": {CommonJS: true},
		`() => { let a = require }`:         {CommonJS: true},
		`{ const module = 1 } module.exports = 1`:                   {CommonJS: true},
		`import('fs').then(() => require('a'))`:                     {CommonJS: true},
		`async () => { await require('a') }`:                        {CommonJS: true},
		`async () => { for await (const a of exports); }`:           {CommonJS: true},
		`class A { static a = require('a') }`:                       {CommonJS: true},
		`with (a) b; 010; require('a')`:                             {CommonJS: true},
		`'require' + "module.exports"; /* exports */ // __filename`: {},
		"`require ${1}`; /require/.test(a)":                         {},
		`a.require('x'); a?.module; a.exports = 1`:                  {},
		`({ require: 1, module() {}, get exports() { return 1 } })`: {},
		`function f(require) { return require('a') }`:               {},
		`const f = (module, { exports }) => module(exports)`:        {},
		`try { a() } catch (module) { b(module) }`:                  {},
		`function require(a) { return a } require(1)`:               {},
		`var module = { exports: 1 }; module.exports`:               {},
		`for (const exports of a) b(exports)`:                       {},
		`class exports {} new exports()`:                            {Module: true},
		`const require = f(); require('a')`:                         {Module: true},
		`let { b: module } = a; module.exports`:                     {Module: true},
		`const { module: a } = b; require(a)`:                       {CommonJS: true},
		`{ let module = 1 }`:                                        {},
		`import 'fs'`:                                               {Module: true},
		`import a from 'fs'; require('a')`:                          {Module: true},
		`export const a = 1`:                                        {Module: true},
		`export {}`:                                                 {Module: true},
		`export default 1`:                                          {Module: true},
		`f(import.meta.url)`:                                        {Module: true},
		`function f() { return import.meta }`:                       {Module: true},
		`await 1`:                                                   {Module: true},
		`if (a) { b(await require('a')) }`:                          {Module: true},
		`for await (const a of b);`:                                 {Module: true},
		`await using a = b`:                                         {Module: true},
		`import('fs')`:                                              {},
		`async function f() { await 1; await using a = 1 }`:         {},
		`(async () => { await 1 })()`:                               {},
		`class A { async f() { await 1 } }`:                         {},
		`import 'fs'; const = require('a')`:                         {Module: true},
		`const a = require('a'); const = 1`:                         {CommonJS: true},
		`a.require('a'); const = 'module'`:                          {},
		`const __free = require('a'), __free_ = 1`:                  {CommonJS: true},
	} {
		if got := SyntaxOf(code, CommonJS); got != want {
			t.Errorf("%s: %+v, want %+v", code, got, want)
		}
	}
}

// checkSyntax compares SyntaxOf with esbuild.
func checkSyntax(t *testing.T, code string) {
	t.Helper()
	r := parse(code, maxNesting)
	if r.failed || len(transformPlain(code, nil).Errors) > 0 {
		return
	}
	got := SyntaxOf(code, CommonJS)
	if want := usesFree(code, CommonJS); got.CommonJS != want && !r.isModule {
		t.Errorf("%.300s\nuses a name of CommonJS: %t, to esbuild %t", code, got.CommonJS, want)
	}
}

func FuzzSyntaxOf(f *testing.F) {
	addShapes(f)
	for _, code := range []string{
		"{ const module = 1 } module.exports = 1", "f = (module, { exports }) => module(exports)", "async exports => exports",
		"async (require = module) => 1; async (require)", "({ module = 1, a: exports, [require]: b } = c)", "class exports extends require {}",
	} {
		f.Add(code)
	}
	f.Fuzz(func(t *testing.T, code string) {
		if len(code) <= 4096 {
			checkSyntax(t, code)
		}
	})
}

// A global that the host provides is not one of CommonJS's names.
func TestSyntaxOfGlobals(t *testing.T) {
	names := []string{"require", "exports"}
	if got := SyntaxOf(`module.id`, names); got != (Syntax{}) {
		t.Errorf("a given name: %+v", got)
	}
	if got := SyntaxOf(`module.id + require`, names); got != (Syntax{CommonJS: true}) {
		t.Errorf("another one: %+v", got)
	}
}

func BenchmarkSyntaxOf(b *testing.B) {
	for name, code := range map[string]string{
		"CommonJS20K": "const a = require('fs')\n" + program20K(false)[len("import { createHash } from 'node:crypto';\n"):],
		"OneLine":     "console.log(require('os').EOL)",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				SyntaxOf(code, CommonJS)
			}
		})
	}
}

// usesFree reports whether code uses one of the names without declaring it. esbuild resolves all
// scopes, and replaces only such names.
func usesFree(code string, names []string) bool {
	marker := "__free"
	for strings.Contains(code, marker) {
		marker += "_"
	}
	define := make(map[string]string, len(names))
	for _, name := range names {
		define[name] = marker
	}
	result := transformPlain(code, define)
	return len(result.Errors) == 0 && strings.Contains(string(result.Code), marker)
}

func transformPlain(code string, define map[string]string) api.TransformResult {
	return api.Transform(code, api.TransformOptions{
		Define: define, Sourcefile: "program.js", Loader: api.LoaderJS, Target: api.ESNext,
		TreeShaking: api.TreeShakingFalse, LogLevel: api.LogLevelSilent,
	})
}
