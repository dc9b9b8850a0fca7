package snippet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// cpuTime returns the processor time of this process: wall-clock time would depend on what else
// the machine does.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestHostileCode checks that no code takes long, for any nesting and depth, as JavaScript and
// as TypeScript after a return. The bound is far above the actual 0.3 s; a time that is quadratic in the size would be minutes.
func TestHostileCode(t *testing.T) {
	const bound = 4 * time.Second
	var worst time.Duration
	var slowest string
	for _, h := range hostile {
		for _, depth := range []int{40, 1 << 30} {
			for _, form := range []struct {
				prefix string
				size   int
			}{{"", MaxCode}, {"let t:any;if(t)return 1;\n", maxTyped}} {
				code := form.prefix + hostileCode(h.open, h.within, h.shut, depth, form.size-len(form.prefix)-8)
				start := cpuTime()
				_, err := Module(code)
				took := cpuTime() - start
				name := fmt.Sprintf("%q%q%q to %d behind %q: %d bytes in %v: %.80v", h.open, h.within, h.shut, depth, form.prefix, len(code), took, err)
				if took > worst {
					worst, slowest = took, name
				}
				if took > bound {
					t.Error(name)
				}
			}
		}
	}
	t.Logf("the slowest: %s", slowest)
}

// TestHostileFiles is TestHostileCode for files, and for the module format of programs that
// declare names, so that esbuild must decide.
func TestHostileFiles(t *testing.T) {
	const bound = 12 * time.Second // esbuild may run three times
	for _, h := range hostile {
		for _, depth := range []int{40, 1 << 30} {
			start := cpuTime()
			SyntaxOf("var module;require;"+hostileCode(h.open, h.within, h.shut, depth, maxTyped), func(string) bool { return false })
			middle := cpuTime()
			_, _ = Translate("a.tsx", "enum A{}\n"+hostileCode(h.open, h.within, h.shut, depth, maxTyped-16), true)
			if format, file := middle-start, cpuTime()-middle; format > bound || file > bound {
				t.Errorf("%q%q%q to %d: format in %v, file in %v", h.open, h.within, h.shut, depth, format, file)
			}
		}
	}
}
