package work

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/internal/snippet"
	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
)

// hostile are parts that can be nested to any depth: the start, the innermost code and the
// end.
var hostile = []struct{ open, within, shut string }{
	{"(", "1", ")"}, {"(", "", ""}, {"[", "1", "]"}, {"[", "", ""}, {"{", "", "}"}, {"{", "", ""}, {")", "", ""}, {"}", "", ""},
	{"!", "1", ""}, {"- ", "1", ""}, {"typeof ", "1", ""}, {"new ", "x", ""}, {"await ", "x", ""}, {"...", "x", ""},
	{"a=>", "1", ""}, {"()=>", "1", ""}, {"()=>{", "1", "}"}, {"async()=>", "1", ""}, {"(a=", "1", ")=>1"}, {"async(a=", "1", ")=>1"},
	{"x?", "1", ":1"}, {"x?", "", ""}, {"x?1:", "1", ""}, {"x?(", "1", "):1"}, {"x?(a):", "1", ""},
	{"x?(a)=>", "1", ":1"}, {"x?(a,b=", "1", "):1"}, {"x?(b=>(", "1", ")):1"},
	{"if(1)", "1", ""}, {"if(a);else ", "1", ""}, {"if(a){}else ", "1", ""}, {"for(;;)", "1", ""}, {"while(1)", "1", ""},
	{"do ", "1;", " while(1)"}, {"with(a)", "1", ""}, {"a:", "1", ""}, {"try{", "", "}finally{}"}, {"switch(1){case 1:", "", "}"},
	{"for(let a;;)", "1", ""}, {"for(let a of b){", "1", "}"},
	{"`${", "1", "}`"}, {"`${", "", ""}, {"`", "", ""}, {"'", "", ""}, {"/", "", ""}, {"/*", "", ""}, {"\\", "", ""},
	{"a={a:", "1", "}"}, {"a={a(){", "1", "}}"}, {"a={[", "1", "]:1}"}, {"[...", "a", "]"}, {"let[a=", "1", "]=1;"},
	{"function f(){", "", "}"}, {"(function(){", "", "})()"}, {"function f(a=", "1", "){}"}, {"function a(b){", "", "}"},
	{"class A{a=", "1", "}"}, {"class extends ", "A", "{}"}, {"x=class{[", "1", "](){}}"}, {"class A{static{", "", "}}"},
	{"a**", "1", ""}, {"a+", "1", ""}, {"a,", "1", ""}, {"a||", "1", ""}, {"a??", "1", ""}, {"a||(b&&", "1", ")"}, {"a=", "1", ""}, {"a<", "1", ""},
	{"", "a", ".b"}, {"", "a", "?.b"}, {"", "a", "()"}, {"", "a", "[1]"}, {"", "a", "``"}, {"", "a", "++"}, {"", "a", "!"}, {"a.", "b", ""},
	{"import(", "1", ")"}, {"import a from'b';", "", ""}, {"export{a};", "", ""}, {"var a;", "", ""}, {"a\n", "", ""}, {";", "", ""}, {"\n", "", ""},
	{"{a:1}\n", "", ""}, {"return\n", "", ""}, {"return{", "", "}"}, {"x=", "/a/", ""}, {"a/", "b", ""}, {"}/)/", "", ""},
	// TypeScript.
	{"a<", "b", ">()"}, {"let x:A<", "B", ">;"}, {"let x:(", "a", ");"}, {"let x:()=>", "a", ";"}, {"let x:", "a", "[];"}, {"a<b,", "1", ""}, {"f<a,g<", "b", ">>()"},
	{"type x=a extends b?", "c", ":d;"}, {"type x=keyof ", "a", ";"}, {"type x={a:", "b", "};"}, {"type x=[", "b", "];"}, {"type x=a|", "b", ";"},
	{"type x=a extends infer b extends ", "c", "?1:1;"}, {"type x=`${", "a", "}`;"}, {"<a>", "b", ""}, {"", "a", " as a"}, {"(a as b<", "c", ">)"},
	{"(a):a=>", "1", ""}, {"(a=", "1", "):b=>1"}, {"<T>(a)=>", "1", ""}, {"async<T>(", "1", ")"}, {"<T,>(a)=>", "1", ""},
	{"namespace a{", "let x=1", "}"}, {"enum A{a=", "1", "}"}, {"@(", "a", ")class{}"}, {"declare ", "let a", ""}, {"abstract ", "class A{}", ""},
	{"interface A{a:", "b", "}"}, {"function f(a:", "b", "){}"}, {"x!/", "a", "/"},
	// Code for which esbuild has many messages.
	{"with(a)b\n", "", ""}, {"010;", "", ""}, {"'\\01';", "", ""}, {"delete a;", "", ""}, {"static;", "", ""}, {"eval=1;", "", ""}, {"let a;", "", ""}, {"class A{}", "", ""},
	{"const a=1;", "", ""}, {"a=1;", "const a=1", ""}, {"[a]=1;", "const a=1", ""}, {"case 1:", "", ""}, {"switch(1){case 1:case 1:", "", "}"}, {"({a:1,a:1})\n", "", ""}, {"x={a:1,", "", ""},
	{"'a':1,", "", ""}, {"export{a};", "let a", ""}, {"export{'a'as'b'}from'c';", "", ""}, {"import{a}from'b';", "", ""}, {"var{a}=1;let{a}=1;", "", ""}, {"function f(a,a){}", "", ""}, {"if(1)function f(){}\n", "", ""},
	{"for(var a=1 in b);", "", ""}, {"await:1;", "", ""}, {"break a;", "", ""}, {"#a in b;", "", ""}, {"new.target;", "", ""}, {"super();", "", ""}, {"1=1;", "", ""}, {"a?.b=1;", "", ""}, {"x===-0;", "", ""}, {"typeof x==='y';", "", ""},
	{"yield;", "", ""}, {"arguments;", "", ""}, {"import.meta;", "", ""}, {"exports.a=1;", "", ""}, {"/a/gg;", "", ""}, {"({__proto__:1,__proto__:1});", "", ""}, {"a??b||c;", "", ""}, {"class A{#a;#a;}", "", ""}, {"class A{#a;", "", "}"},
	{"function f();", "", ""}, {"enum A{a,a}", "", ""}, {"<a b b/>;", "", ""}, {"(a as any)=1;", "", ""}, {"export const a=1;", "", ""}, {"export default 1;", "", ""}, {"import a=b;", "", ""},
	// JSX.
	{"<a>", "", "</a>"}, {"<a>", "", ""}, {"<>", "", "</>"}, {"<a>{", "1", "}</a>"}, {"<a b={", "1", "}/>"}, {"<a b=", "<a/>", "/>"}, {"<a>'(", "", "</a>"},
	{"<a>{/", "a", "/}</a>"}, {"<a b='", "", "'/>"}, {"<a/>\n", "", ""}, {"<a.b c:d>", "", "</a.b>"}, {"<A<", "b", ">/>"},
	// Code for the linter.
	{"process;", "", ""}, {"a.process,", "a", ""}, {"a['con'+", "'x'", "]"}, {"", "a", "['con'+'structor']"}, {"", "a", ".constructor"},
	{"'a'+", "'a'", ""}, {"x['a'+b+", "1", "];"}, {"`${", "a", "}`"}, {"(a=", "1", ")=>1"}, {"((a=", "1", ")=>1)"}, {"{let process;", "", "}"},
	{"function f(){", "process", "}"}, {"class A{a=", "1", "}"}, {"a?.b", "", ""}, {"[", "process", "]"}, {"Object.a(", "'b'", ")"}, {"a||", "a", ""},
	{"globalThis[", "a", "]"}, {"a?b:", "c", ""}, {"{process:", "1", "}"}, {"const{constructor:a=", "1", "}=b;"}, {"'a'", "", ".concat('b')"},
	{"const a=1;{", "", "}"}, {"String(", "'constructor'", ")"}, {"import a from 'b';", "", ""}, {"😀", "", ""}, {"a['😀'];", "", ""},
	{"enum A{process};", "", ""}, {"namespace N{export let process;[", "process", "]}"}, {"(function(){", "", "})()"},
	// Markdown.
	{"```\n", "", ""}, {"```js\n1\n```\n", "", ""}, {"~~~\n", "", ""}, {"````js\n", "", ""}, {"   ```\n   1\n   ```\n", "", ""}, {"```js\n```\n", "", ""}, {"> ", "", ""},
	{"``` ", "", ""}, {"1. ", "```", ""}, {"> ", "```", ""}, {"> ```js\n> 1\n> ```\n", "", ""}, {" ```js\n- ```js\n", "", ""}, {"<a>\n```\n", "", "</a>"}, {"<a>```", "", "</a>"},
}

// hostileCode nests a part to a depth, and repeats that up to size bytes.
func hostileCode(open, within, shut string, depth, size int) string {
	depth = min(depth, (size-len(within))/max(1, len(open)+len(shut)))
	one := strings.Repeat(open, depth) + within + strings.Repeat(shut, depth)
	return strings.Repeat(one+";\n", max(1, size/(len(one)+2)))
}

// testLimit is the time limit of operations in these tests: shorter than the real one, for there are many.
const testLimit = time.Second / 2

// each calls f for many hostile inputs, some at a time. f's operation must end by its limit, with
// a result or an error about its input.
func each[T any](t *testing.T, list []T, f func(d *Domain, in T) error) {
	t.Helper()
	d := open(t)
	d.limit = testLimit
	var turns sync.WaitGroup
	inputs := make(chan T)
	for range maxProcesses {
		turns.Go(func() {
			for in := range inputs {
				if err := f(d, in); err != nil {
					t.Errorf("%.200v: %v", in, err)
				}
			}
		})
	}
	for _, in := range list {
		inputs <- in
	}
	close(inputs)
	turns.Wait()
	d.limit = maxTime
	if _, err := d.Compile(t.Context(), Source{Code: []byte("1")}); err != nil {
		t.Error(err)
	}
}

// onlyInvalid drops errors about the code.
func onlyInvalid(err error) error {
	if _, ok := errors.AsType[*snippet.SyntaxError](err); ok {
		return nil
	}
	return err
}

// TestHostile checks that all nesting and depth, as JavaScript, as TypeScript after a return and as
// a file, takes at most its time and ends no more than its process.
func TestHostile(t *testing.T) {
	depths := []int{40, 1 << 30}
	size, some := snippet.MaxCode, 1
	if testing.Short() {
		depths, size, some = depths[1:], 20_000, 8
	}
	var list []string
	for i, h := range hostile {
		if i%some != 0 {
			continue
		}
		for _, depth := range depths {
			list = append(list, hostileCode(h.open, h.within, h.shut, depth, size-100))
		}
	}
	each(t, list, func(d *Domain, code string) error {
		for _, prefix := range []string{"", "let t:any;if(t)return 1;\n"} {
			if _, err := d.Compile(t.Context(), Source{Code: []byte(prefix + code)}); onlyInvalid(err) != nil {
				return err
			}
		}
		if _, err := d.SyntaxOf(t.Context(), "var module;require;"+code, func(string) bool { return false }); err != nil {
			return err
		}
		rules := lint.Directive()
		if _, err := d.Bundle(t.Context(), bundle.Job{Files: []bundle.File{{Path: bundle.EntryPath, Source: code}}, Rules: &rules}); err != nil {
			return err
		}
		_, err := d.Translate(t.Context(), "a.tsx", "enum A{}\n"+code, true)
		return onlyInvalid(err)
	})
}
