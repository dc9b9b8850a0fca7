package escape

import (
	"testing"
	"time"

	"gaol/runtime/snippets"
)

// An attack is a snippet.
type attack struct {
	name    string
	code    string
	timeout time.Duration // 0: the longest
	want    func(*testing.T, *snippets.Output)
}

// waysToNode are the known ways from a snippet to Node's process object, past validators of source
// code: bodies of an asynchronous function that returns it.
var waysToNode = []struct{ name, body string }{
	{"global", "return globalThis.process"},
	{"global by computed name", "return globalThis['pro' + 'cess']"},
	{"global by its descriptor", "const d = Object.getOwnPropertyDescriptor(globalThis, 'process'); return d.value ?? d.get.call(globalThis)"},
	{"global among all names", "return globalThis[Object.getOwnPropertyNames(globalThis).find((name) => name.length === 7 && name.startsWith('proc'))]"},
	{"global by another name", "const g = [globalThis][0]; const { ['process']: p } = g; return p"},
	{"constructor of constructor", "return constructor.constructor('return process')()"},
	{"constructor of a method", "return ''.sub.constructor('return process')()"},
	{"constructor of an arrow function", "return (() => {}).constructor('return process')()"},
	{"constructor of an asynchronous function", "return (async () => {}).constructor('return process')()"},
	{"constructor of a generator", "return (function* () {}).constructor('return process')().next().value"},
	{"constructor of an asynchronous generator", "return (await (async function* () {}).constructor('return process')().next()).value"},
	{"constructor by computed name", "const k = ['con', 'struc', 'tor'].join(''); return [][k][k]('return process')()"},
	{"constructor by escaped name", "return (() => {})['c\\x6fnstr\\u{75}ctor']('return process')()"},
	{"constructor by reflection", "return Reflect.get(() => {}, 'const' + 'ructor')('return process')()"},
	{"constructor by descriptor", "return Object.getOwnPropertyDescriptor(Object.getPrototypeOf(() => {}), 'const' + 'ructor').value('return process')()"},
	{"constructor by destructuring", "const { [['constructor'][0]]: F } = () => {}; return F('return process')()"},
	{"constructor of super", "return new (class extends Function { get F() { return super.constructor } })().F.constructor('return process')()"},
	{"constructor through a proxy", "return new Proxy(() => {}, { get: (f, key) => f[key] }).constructor('return process')()"},
	{"constructor of a timer", "const t = setTimeout(() => {}); return t.constructor.constructor('return process')()"},
	{"constructor of a promise", "return Promise.resolve().then.constructor('return process')()"},
	{"constructor of a thenable's argument", "return await { then(resolve) { resolve(resolve.constructor('return process')()) } }"},
	{"constructor of a call site", "Error.prepareStackTrace = (_, sites) => sites; return new Error().stack[0].constructor.constructor('return process')()"},
	{"constructor of console's stream", "return console._stdout.write.constructor('return process')()"},
	{"constructor of import.meta", "return import.meta.resolve.constructor('return process')()"},
	{"constructor of WebAssembly's function", "const code = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 4, 1, 2, 0, 11]);" +
		"return (await WebAssembly.instantiate(code)).instance.exports.f.constructor('return process')()"},
	{"Function", "return new Function('return process')()"},
	{"this of a sloppy function", "return Function('return this')().process"},
	{"with", "return Function('o', 'with (o) return process')(globalThis)"},
	{"direct eval", "return eval('process')"},
	{"indirect eval", "return (0, eval)('process')"},
	{"import unknown to the bundler", "return (await Function('name', 'return im' + 'port(name)')('node:process')).default"},
	{"import of a data: URL", "return (await Function('name', 'return im' + 'port(name)')('data:text/javascript,export default process')).default"},
	{"import of a written file", "const fs = await import('node:fs'); fs.writeFileSync('/tmp/a.mjs', 'export default process'); return (await Function('name', 'return im' + 'port(name)')('/tmp/a.mjs')).default"},
	{"require", "const { createRequire } = await import('node:module'); return createRequire('/workspace/')('process')"},
	{"main module", "const { Module } = await import('node:module'); return new Module('a').require('process')"},
	{"loader hooks", "const { registerHooks } = await import('node:module'); registerHooks({ resolve: () => ({ url: 'x:y', format: 'module', shortCircuit: true }),\n" +
		"load: () => ({ format: 'module', source: 'export default process', shortCircuit: true }) }); return (await Function('name', 'return im' + 'port(name)')('anything')).default"},
	{"built-in module", "return process.getBuiltinModule('process')"},
	{"vm, this context", "return (await import('node:vm')).runInThisContext('process')"},
	{"vm, new context", "return (await import('node:vm')).runInNewContext('f.constructor(`return process`)()', { f: () => {} })"},
	{"vm, thrown", "try { (await import('node:vm')).runInNewContext('throw f', { f: () => {} }) } catch (f) { return f.constructor('return process')() }"},
	{"inspector", "const { Session } = await import('node:inspector/promises'); const s = new Session(); s.connect();" +
		"await s.post('Runtime.evaluate', { expression: 'globalThis.left = process' }); return globalThis.left"},
	{"binding", "process.binding('util'); return process"},
}

// ways returns an attack for each of them: with the process object, it searches for secrets.
func ways() (list []attack) {
	for _, w := range waysToNode {
		code := "const node = await (async () => { " + w.body + " })();\n" +
			"export const reached = typeof node.pid === 'number' && node.pid === process.pid, found = await search(node, places);" + leave
		list = append(list, attack{name: w.name, code: code, want: wantReached})
	}
	return list
}

// leave leaves things that a later snippet could find.
const leave = `
	{
		const fs = process.getBuiltinModule('fs');
		for (const folder of ['/workspace', '/tmp', '/var/tmp', '/dev/shm', '/home/node']) {
			try {
				fs.writeFileSync(folder + '/left', 'secret-' + 'left-0123456789abcdef');
			} catch {}
		}
		globalThis.left = process.env.left = 'secret-' + 'left-0123456789abcdef';
		Object.prototype.left = 1;
		Error.prepareStackTrace = function replaced() {};
		try {
			process.getBuiltinModule('os').setPriority(10);
		} catch {}
	}`

// wantReached checks that the attack itself worked, so that only the jail was left.
func wantReached(t *testing.T, out *snippets.Output) {
	t.Helper()
	if ok, err := reached(out); err != nil || !ok {
		t.Errorf("the attack did not reach Node: %v, %.1000s, %.1000q, %.1000q", err, out.Facts, out.Errors, out.Logs)
	}
}
