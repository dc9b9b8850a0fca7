package zygote

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// observed is what must not depend on how a run was started.
type observed struct {
	Stdout, Stderr, Value, Signal string
	ExitCode                      int
	Cause                         runtime.Cause
}

// varying is what differs between any two runs: process ids, times, and addresses.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\(node:\d+\)`), "(node:PID)"},
	{regexp.MustCompile(`\[\d+:0x[0-9a-f]+\]`), "[PID:ADDRESS]"},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "ADDRESS"},
	{regexp.MustCompile(`(?s)\n<--- Last few GCs --->\n.*?FATAL ERROR: (Ineffective mark-compacts near|Reached) heap limit`), "FULL HEAP"},
	{regexp.MustCompile(`(?s)----- Native stack trace -----\n\n.*?(\n\n|$)`), "STACK\n"},
}

func observe(t *testing.T, rt *runtime.NodeRuntime, code string, o runtime.RunOptions, stdin string) observed {
	t.Helper()
	if stdin != "" {
		o.Stdin = strings.NewReader(stdin)
	}
	res := harness.Run(t, rt, code, o)
	same := func(text []byte) string {
		s := string(text)
		for _, v := range varying {
			s = v.pattern.ReplaceAllString(s, v.with)
		}
		return s
	}
	return observed{same(res.Stdout), same(res.Stderr), string(res.Value), res.Signal, res.ExitCode, res.Cause}
}

// programs print how their Node was started, if anything shows it. mentions is a part of
// their output, so that a program that fails in the same way with both launchers is
// noticed.
var programs = []struct {
	name, code, mentions string
	stdin                string
	opts                 runtime.RunOptions
}{
	{name: "exit code", code: `process.exitCode = 5`, mentions: ""},
	{name: "exit in the middle", code: `setInterval(() => {}, 1000); setTimeout(() => process.exit(6), 5)`},
	{name: "exit handlers", code: `process.on('beforeExit', () => console.log('before')).on('exit', c => console.log('exit', c)); process.exitCode = 3`, mentions: "before\nexit 3"},
	{name: "exit handlers of exit", code: `process.on('beforeExit', () => console.log('before')).on('exit', c => console.log('exit', c)); process.exit(4)`, mentions: "exit 4"},
	{name: "exit code of an exit handler", code: `process.on('exit', c => { console.log(c, process.exitCode); process.exitCode = 9 })`, mentions: "0 undefined"},
	{name: "exit in an exit handler", code: `process.on('exit', c => { console.log(c); process.exit(12) })`, mentions: "0"},
	{name: "error in an exit handler", code: `process.on('exit', () => { throw new Error('late') })`, mentions: "Error: late"},
	{name: "error in a handler of errors", code: `process.on('uncaughtException', () => { throw new Error('second') }); throw new Error('first')`, mentions: "second"},
	{name: "exit codes that are none", code: `for (const c of ['1', 256, -1, null, 1.5, 'x', true, {}]) try { process.exitCode = c; console.log(c, process.exitCode) } catch (e) { console.log(e.code) } process.exitCode = -1`, mentions: "ERR_INVALID_ARG_TYPE"},
	{name: "exit code of an unsettled await", code: `process.on('exit', c => { console.log(c, process.exitCode); process.exitCode = 4 }); await new Promise(() => {})`, mentions: "13"},
	{name: "abort in an exit handler", code: `process.on('exit', () => process.abort())`},
	{name: "work after the last", code: `process.once('beforeExit', c => { console.log(c); setTimeout(() => { process.exitCode = 8; console.log('more') }, 3) })`, mentions: "more"},
	{name: "exit beside workers and tasks", code: `
		import { Worker } from 'node:worker_threads'; import crypto from 'node:crypto';
		new Worker('for (;;);', { eval: true }).on('online', () => process.exit(14)); for (let i = 0; i < 8; i++) crypto.pbkdf2('a', 'b', 20000, 64, 'sha512', () => {})`},
	{name: "exit beside compilation", code: `
		const n = 2000, body = [0, ...Array(200).fill([32, 0, 32, 1, 106, 33, 0]).flat(), 32, 0, 11];
		const leb = n => { const o = []; do { o.push(n & 127 | (n > 127 ? 128 : 0)); n >>>= 7 } while (n); return o }, section = (id, bytes) => [id, ...leb(bytes.length), ...bytes];
		WebAssembly.compile(Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, ...section(1, [1, 96, 2, 127, 127, 1, 127]), ...section(3, [...leb(n), ...Array(n).fill(0)]), ...section(10, [...leb(n), ...Array(n).fill([...leb(body.length), ...body]).flat()])]));
		setTimeout(() => process.exit(19), 2)`},
	{name: "uncaught error", code: `function f() { throw new TypeError('no') } f()`, mentions: "TypeError: no\n    at f"},
	{name: "uncaught error's handler", code: `process.on('uncaughtException', (e, o) => console.log(e.message, o)); setTimeout(() => { throw Error('a') }); Promise.reject(Error('b'))`, mentions: "unhandledRejection"},
	{name: "uncaught value", code: `throw { a: 1 }`, mentions: "a: 1"},
	{name: "unhandled rejection", code: `Promise.reject(new RangeError('far'))`, mentions: "RangeError: far"},
	{name: "unsettled await", code: `await new Promise(() => {})`, mentions: "unsettled"},
	{name: "syntax error", code: `let a = ;`, mentions: "SyntaxError"},
	{name: "missing import", code: `import './nosuch.mjs'`, mentions: "ERR_MODULE_NOT_FOUND"},
	{name: "warning", code: `process.emitWarning('mind'); new Buffer(1)`, mentions: "(node:PID) Warning: mind"},
	{name: "stack overflow", code: `(function f() { f() })()`, mentions: "RangeError"},
	{name: "signals", code: `
		for (const s of ['SIGTERM', 'SIGINT', 'SIGUSR2', 'SIGHUP', 'SIGWINCH', 'SIGPIPE']) process.once(s, (...a) => console.log(...a));
		for (const s of ['SIGTERM', 'SIGINT', 'SIGUSR2', 'SIGHUP', 'SIGWINCH', 'SIGPIPE']) { process.kill(process.pid, s); await new Promise(r => setTimeout(r, 20)) }`, mentions: "SIGHUP 1"},
	{name: "SIGTERM", code: `process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000)`},
	{name: "SIGPIPE", code: `process.kill(process.pid, 'SIGPIPE'); console.log('alive')`, mentions: "alive"},
	{name: "SIGUSR2", code: `process.kill(process.pid, 'SIGUSR2'); setInterval(() => {}, 1000)`},
	{name: "SIGXFSZ", code: `process.kill(process.pid, 'SIGXFSZ'); await new Promise(r => setTimeout(r, 20)); console.log('alive')`},
	{name: "abort", code: `process.abort()`},
	{name: "stdin", code: `let n = 0; for await (const c of process.stdin) n += c.length; console.log(n, process.stdin.constructor.name, process.stdin.isTTY)`, stdin: strings.Repeat("x", 300000), mentions: "300000 Socket"},
	{name: "stdin at once", code: `import fs from 'node:fs'; __return(fs.readFileSync(0, 'utf8'))`, stdin: "line", mentions: `"line"`},
	{name: "no stdin", code: `process.stdin.on('data', console.log).on('end', () => console.log('end'))`, mentions: "end"},
	{name: "closed streams", code: `import fs from 'node:fs'; for (const fd of [0, 1, 2]) fs.closeSync(fd); try { console.log(1); fs.writeSync(2, 'x') } catch (e) { __return(e.code) }`, mentions: "EBADF"},
	{name: "large output", code: `process.stdout.write('x'.repeat(3e5), () => process.exit(2))`, mentions: "xxx"},
	{name: "console", code: `console.log('%s %d %o', 'a', 1, { b: [new Map([[1, new Set([2])]])] }); console.table([{ a: 1 }]); console.error(new Error('e').message); console.group(); console.dir({ c: { d: { e: { f: 1 } } } }); console.trace('t')`, mentions: "Trace: t"},
	{name: "worker", code: `
		import { Worker, isMainThread, threadId } from 'node:worker_threads';
		const w = new Worker("const { parentPort, workerData, threadId } = require('worker_threads'); console.log('in', threadId, process.argv, process.env.OWN, Object.keys(require.cache)); parentPort.postMessage(workerData); process.on('exit', () => console.log('over')); process.exit(3)", { eval: true, workerData: { a: [1n] }, argv: ['b'] });
		let got; w.on('message', m => got = m).on('exit', c => console.log('exit', c, got, isMainThread, threadId))`, mentions: "exit 3"},
	{name: "worker of the program", code: `
		import { Worker, isMainThread, parentPort } from 'node:worker_threads';
		if (isMainThread) new Worker(new URL(import.meta.url)).on('message', m => console.log(m)).on('error', e => console.log('error', e.message)); else parentPort.postMessage('from ' + import.meta.url)`, mentions: "from file:"},
	{name: "worker that throws", code: `import { Worker } from 'node:worker_threads'; new Worker('throw new Error("w")', { eval: true }).on('error', e => console.log(e.stack))`, mentions: "Error: w"},
	{name: "worker without end", code: `import { Worker } from 'node:worker_threads'; const w = new Worker('for (;;);', { eval: true }); w.on('online', async () => console.log(await w.terminate()))`, mentions: "1"},
	{name: "shared memory", code: `import { Worker } from 'node:worker_threads'; const s = new Int32Array(new SharedArrayBuffer(4)); new Worker('const { workerData: s } = require("worker_threads"); Atomics.store(s, 0, 7); Atomics.notify(s, 0)', { eval: true, workerData: s }); Atomics.wait(s, 0, 0, 5000); console.log(s[0])`, mentions: "7"},
	{name: "WebAssembly", code: `
		const bytes = Uint8Array.from([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]);
		const { instance } = await WebAssembly.instantiate(bytes); console.log(instance.exports.add(2, 3), WebAssembly.validate(bytes), await WebAssembly.compile(bytes))`, mentions: "5 true"},
	{name: "WebAssembly trap", code: `
		const bytes = Uint8Array.from([0,97,115,109,1,0,0,0,1,5,1,96,0,1,127,3,2,1,0,5,3,1,0,1,7,5,1,1,102,0,0,10,11,1,9,0,65,128,128,4,40,2,0,11]);
		try { (await WebAssembly.instantiate(bytes)).instance.exports.f() } catch (e) { console.log(e.name, e.message) }`, mentions: "out of bounds"},
	{name: "fork", code: `
		import { fork } from 'node:child_process'; import fs from 'node:fs';
		fs.writeFileSync('/tmp/child.cjs', 'process.on("message", m => { process.send([m, process.argv.length, process.execArgv, process.env.OWN, process.connected]); process.disconnect() })');
		const c = fork('/tmp/child.cjs', ['x']); c.on('message', m => console.log(m)).on('exit', (...a) => console.log(...a)); c.send({ hello: 1 })`, mentions: "hello"},
	{name: "spawn", code: `
		import { spawn } from 'node:child_process';
		const c = spawn('sh', ['-c', 'cat; echo err >&2; exit 9']); c.stdout.on('data', d => console.log(String(d))); c.stderr.on('data', d => console.log(String(d))); c.on('close', (...a) => console.log(...a)); c.stdin.end('in')`, mentions: "9 null"},
	{name: "spawn of a missing program", code: `import { spawn } from 'node:child_process'; spawn('nosuch').on('error', e => console.log(e.code, e.syscall))`, mentions: "ENOENT"},
	{name: "exec", code: `import { execSync, exec } from 'node:child_process'; console.log(String(execSync('echo $OWN; env | sort; umask; ulimit -n; cat /proc/self/status | grep -E "^(Sig|Cap|NoNew|Seccomp|Umask)"; ls -l /proc/self/fd | wc -l'))); exec('exit 3', e => console.log(e.code))`, mentions: "\n3"},
	{name: "a child's descriptors", code: `import { spawnSync } from 'node:child_process'; console.log(String(spawnSync('sh', ['-c', 'for f in /proc/$$/fd/*; do echo \${f##*/}; done']).stdout))`, mentions: "0\n1\n2"},
	{name: "a child that is killed", code: `import { spawn } from 'node:child_process'; const c = spawn('sleep', ['9']); c.on('exit', (...a) => console.log(...a)); c.kill('SIGTERM')`, mentions: "SIGTERM"},
	{name: "CommonJS", code: `console.log(require.main === module, __filename, module.id, module.paths, require('path').sep, Object.keys(require.cache), typeof require('./x.json'))`, opts: runtime.RunOptions{Name: "a.cjs"}, mentions: "MODULE_NOT_FOUND"},
	{name: "CommonJS and modules", code: `
		const fs = require('fs'); fs.writeFileSync('/tmp/m.mjs', 'export default import.meta.filename; export const t = await 5'); fs.writeFileSync('/tmp/c.cjs', 'module.exports = { at: __filename, parent: module.parent && module.parent.filename }');
		import('/tmp/m.mjs').then(m => console.log(m.default, m.t)); console.log(require('/tmp/c.cjs'), module.children.length)`, opts: runtime.RunOptions{Name: "a.cjs"}, mentions: "/tmp/m.mjs 5"},
	{name: "modules", code: `
		import fs from 'node:fs'; import { createRequire } from 'node:module';
		fs.writeFileSync('/tmp/d.json', '{"a":1}'); const { default: d } = await import('/tmp/d.json', { with: { type: 'json' } });
		console.log(d, import.meta.url, import.meta.filename, import.meta.dirname, import.meta.resolve('./x'), import.meta.main, Object.keys(createRequire(import.meta.url).cache), typeof require, this)`, mentions: "/main.mjs"},
	{name: "TypeScript", code: `interface A { a: number } const f = (x: A): number => x.a; console.log(f({ a: 4 })); throw new Error('in ts' as string)`, opts: runtime.RunOptions{Name: "t.ts"}, mentions: "in ts"},
	{name: "source maps", code: `
		import fs from 'node:fs';
		const map = Buffer.from(JSON.stringify({ version: 3, sources: ['orig.ts'], names: [], mappings: 'AAKA' })).toString('base64');
		fs.writeFileSync('/tmp/gen.mjs', 'export function f() { throw new Error("mapped") }\n//# sourceMappingURL=data:application/json;base64,' + map);
		process.setSourceMapsEnabled(true); const { f } = await import('/tmp/gen.mjs'); try { f() } catch (e) { console.log(e.stack) } console.log(process.sourceMapsEnabled)`, mentions: "orig.ts"},
	{name: "Intl", code: `console.log(new Intl.NumberFormat('de-DE', { style: 'currency', currency: 'EUR' }).format(1234.5), new Date(0).toLocaleString('fr-FR', { timeZone: 'Europe/Paris', dateStyle: 'full' }), ['ä', 'z', 'a'].sort(new Intl.Collator('sv').compare), Intl.DateTimeFormat().resolvedOptions(), 'I'.toLocaleLowerCase('tr'))`, mentions: "1.234,50"},
	{name: "Intl without LANG", code: `console.log(Intl.DateTimeFormat().resolvedOptions(), (1234.5).toLocaleString(), ['ä', 'z', 'a'].sort(new Intl.Collator().compare), process.env)`, opts: runtime.RunOptions{Permissions: policy.Permissions{Env: policy.Scope{Default: policy.Deny}}}, mentions: "1,234.5"},
	{name: "TZ", code: `console.log(new Date(0).toString(), new Date(2024, 6, 1).getTimezoneOffset(), Intl.DateTimeFormat().resolvedOptions().timeZone); process.env.TZ = 'UTC'; console.log(new Date(0).toString())`, opts: runtime.RunOptions{Env: map[string]string{"TZ": "America/New_York"}}, mentions: "Eastern"},
	{name: "environment", code: `process.env.NEW = 1; delete process.env.HOME; console.log(process.env, Object.keys(process.env).length); process.loadEnvFile?.call; import('node:os').then(os => console.log(os.homedir(), os.tmpdir(), os.hostname(), os.userInfo().uid))`, opts: runtime.RunOptions{Env: map[string]string{"EMPTY": "", "Ü": "ä\nb"}}, mentions: "EMPTY: ''"},
	{name: "process", code: `console.log(process.title, process.argv, process.argv0, process.execArgv, process.execPath, process.cwd(), process.umask(), process.ppid, process.version, process.release.name, process.config.variables.napi_build_version, process.allowedNodeEnvironmentFlags.size, process.features, process.getuid(), process.getgroups(), process.exitCode, process.channel, process.connected, process.debugPort, process.noDeprecation, process.report.directory, process.permission)`, opts: runtime.RunOptions{Args: []string{"", "ä", "--inspect"}}, mentions: "--inspect"},
	{name: "title", code: `import fs from 'node:fs'; process.title = 'mine'; console.log(process.title, fs.readFileSync('/proc/self/comm', 'utf8'))`, mentions: "mine"},
	{name: "report", code: `const r = process.report.getReport(); console.log(r.header.cwd, r.header.event, r.header.threadId, r.environmentVariables, r.userLimits, r.workers.length, r.header.processId === process.pid, Object.keys(r))`, mentions: "JavaScript API"},
	{name: "listeners", code: `console.log(process.resourceUsage !== undefined, process.listenerCount('exit'), process.eventNames(), process.binding?.name)`, mentions: "true"},
	{name: "handles", code: `console.log(process._getActiveRequests().length); console.error(); setTimeout(() => console.log(process.getActiveResourcesInfo()), 1)`, mentions: "Timeout"},
	{name: "heap", code: `import v8 from 'node:v8'; const h = v8.getHeapStatistics(); console.log(h.heap_size_limit, h.number_of_detached_contexts)`, mentions: ""},
	{name: "flags of V8", code: `import v8 from 'node:v8'; import vm from 'node:vm'; console.log(typeof gc, typeof globalThis.gc); try { eval('%GetHeapUsage()') } catch (e) { console.log(e.name) } v8.setFlagsFromString('--expose-gc'); console.log(typeof vm.runInNewContext('gc'))`, mentions: "SyntaxError"},
	{name: "vm", code: `import vm from 'node:vm'; console.log(vm.runInNewContext('[typeof require, typeof process, Math.random() < 1, this.constructor.name]'), new vm.Script('1 + 1').runInThisContext())`, mentions: "undefined"},
	{name: "thread pool", code: `import fs from 'node:fs/promises'; import crypto from 'node:crypto'; import dns from 'node:dns'; import zlib from 'node:zlib'; import { promisify } from 'node:util';
		console.log(await Promise.all([...Array(20)].map(() => fs.readFile('/etc/passwd').then(b => b.length > 0)))); console.log((await promisify(crypto.scrypt)('a', 'b', 16)).toString('hex'), zlib.gunzipSync(await promisify(zlib.gzip)('z')).toString(), await promisify(dns.lookup)('localhost').then(a => a.address, e => e.code))`, mentions: "z"},
	{name: "sockets", code: `import net from 'node:net'; const s = net.createServer(c => c.end('hi')).listen(0, '127.0.0.1', () => net.connect(s.address().port, '127.0.0.1').on('data', d => console.log(String(d))).on('close', () => s.close()))`, mentions: "hi"},
	{name: "http and fetch", code: `import http from 'node:http'; const s = http.createServer((q, r) => r.end(q.url)).listen(0, '127.0.0.1', async () => { console.log(await (await fetch('http://127.0.0.1:' + s.address().port + '/x')).text()); s.close(); s.closeAllConnections() })`, mentions: "/x"},
	{name: "file watching", code: `import fs from 'node:fs'; fs.writeFileSync('/tmp/w', ''); const w = fs.watch('/tmp/w', (e) => { console.log(e); w.close() }); setTimeout(() => fs.appendFileSync('/tmp/w', 'x'), 20)`, mentions: "change"},
	{name: "timers", code: `const order = []; setTimeout(() => order.push('t')); setImmediate(() => order.push('i')); process.nextTick(() => order.push('n')); queueMicrotask(() => order.push('m')); Promise.resolve().then(() => order.push('p')); await new Promise(r => setTimeout(r, 20)); console.log(order.filter(x => x !== 'i' && x !== 't'), order.length)`, mentions: "5"},
	{name: "async hooks", code: `import { AsyncLocalStorage, executionAsyncId } from 'node:async_hooks'; const a = new AsyncLocalStorage(); a.run(1, () => setTimeout(() => console.log(a.getStore()), 1)); console.log(a.getStore(), executionAsyncId())`, mentions: "undefined"},
	{name: "ids of async resources", code: `import { createHook } from 'node:async_hooks'; const types = []; createHook({ init(id, type) { types.push(type) } }).enable(); setTimeout(() => console.log(types.slice(0, 3)), 1)`, mentions: "Timeout"},
	{name: "finalization", code: `let n = 0; new FinalizationRegistry(() => n++).register({}, 0); console.log(new WeakRef({}).deref() !== undefined)`, mentions: "true"},
	{name: "globals that were changed", code: `console.log(Object.prototype.toString.call(globalThis), Reflect.ownKeys(globalThis).map(String).sort().join(), Object.isFrozen(Math), Object.getOwnPropertyNames(Performance.prototype).join())`, mentions: "performance"},
	{name: "Performance", code: `const d = (o, n) => { const { get, set, value, ...rest } = Object.getOwnPropertyDescriptor(o, n); return [n, typeof get, typeof set, typeof value, rest] }; console.log(d(Performance.prototype, 'timeOrigin'), Object.getOwnPropertyDescriptor(Performance.prototype, 'timeOrigin').get.name, performance.toJSON().timeOrigin === performance.timeOrigin, Math.abs(performance.toJSON().timeOrigin + performance.now() - Date.now()) < 50, performance.getEntries(), performance.nodeTiming.duration < 5000, Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 50, performance.timeOrigin > Date.now() - 5000)`, mentions: "true"},
	{name: "timing of Node", code: `const n = performance.nodeTiming; console.log(n.nodeStart > 0, n.loopExit, n.idleTime >= 0, n.startTime, process.uptime() < 5, process.hrtime()[0] > 0)`, mentions: "-1"},
	{name: "a function's source", code: `console.log([process.on, process.emitWarning, fetch, setTimeout, console.log, Math.random].map(String).map(s => s.length), Object.keys(Object.getOwnPropertyDescriptor(process, 'pid')))`, mentions: "configurable"},
	{name: "functions of modules", code: `import fs, { realpathSync } from 'node:fs'; import Module from 'node:module'; console.log(fs.realpathSync.name, realpathSync === fs.realpathSync, realpathSync("."), fs.realpathSync.toString().length, Module._findPath.name, Module._findPath.toString().length, Module._cache && Object.keys(Module._cache), Module.globalPaths, process.moduleLoadList === undefined)`, mentions: "realpathSync true"},
	{name: "inspector", code: `import inspector from 'node:inspector'; console.log(inspector.url()); const s = new inspector.Session(); s.connect(); s.post('Runtime.evaluate', { expression: '1+1' }, (e, r) => console.log(e, r.result.value))`, mentions: "2"},
	{name: "full heap", code: `const a = []; for (;;) a.push(new Array(1000).fill({}))`, mentions: "heap out of memory"},
	{name: "a worker's flags", code: `
		import { Worker, isMainThread } from 'node:worker_threads'; const flags = "console.log(process.execArgv, require('worker_threads').resourceLimits)";
		for (const o of [{}, { execArgv: ['--no-warnings'] }]) await new Promise(r => new Worker(flags, { eval: true, ...o }).on('exit', r))
		await new Promise(r => new Worker("new (require('worker_threads').Worker)('console.log(process.execArgv, Object.keys(require.cache))', { eval: true })", { eval: true }).on('exit', r))`, mentions: "--no-warnings"},
	{name: "the command line after a title", code: `import fs from 'node:fs'; const line = () => fs.readFileSync('/proc/self/cmdline', 'utf8').split('\0')[0]; process.title = 'mine'; console.log(line()); process.title = 'x'.repeat(1000); console.log(process.title === line())`, mentions: "mine\ntrue"},
	{name: "getters of recreated objects", code: `console.log(['stdin'].map(n => String(Object.getOwnPropertyDescriptor(process, n).get)), String(Object.getOwnPropertyDescriptor(Performance.prototype, 'timeOrigin').get))`, mentions: "getTimeOriginTimestamp"},
	{name: "contexts and tags of V8", code: `import v8 from 'node:v8'; console.log(v8.getHeapStatistics().number_of_native_contexts, v8.cachedDataVersionTag())`, mentions: "1 "},
	{name: "size of the thread pool", code: `import fs from 'node:fs'; import crypto from 'node:crypto';
		await Promise.all([...Array(20)].map(() => new Promise(r => crypto.pbkdf2('a', 'b', 1000, 8, 'sha512', r)))); console.log(fs.readdirSync('/proc/self/task').length > 12, process.env.NODE_ENV)`, opts: runtime.RunOptions{Env: map[string]string{"UV_THREADPOOL_SIZE": "12", "NODE_ENV": "production"}}, mentions: "true production"},
	{name: "order of Node's start", code: `
		await new Promise(r => setTimeout(r, 60)); const n = performance.nodeTiming, at = [0, n.nodeStart, n.v8Start, n.environment, n.bootstrapComplete];
		console.log(at.every((t, i) => i === 0 || t > at[i - 1]), n.loopStart >= n.bootstrapComplete, n.loopStart < performance.now(), n.idleTime > 0 && n.idleTime < performance.now(), performance.toJSON().timeOrigin === performance.timeOrigin, performance.eventLoopUtilization().idle < performance.now())`, mentions: "true true true true true true"},
	{name: "a worker's times", code: `
		import { Worker } from 'node:worker_threads'; const times = "[performance.timeOrigin, performance.nodeTiming.nodeStart, performance.nodeTiming.v8Start]";
		const theirs = await new Promise(r => new Worker("require('worker_threads').parentPort.postMessage(" + times + ")", { eval: true }).on('message', r)), own = eval(times);
		console.log(own.every((t, i) => Math.abs(t - theirs[i]) < 0.01))`, mentions: "true"},
	{name: "delayed tasks of V8", code: `
		import inspector from 'node:inspector'; const s = new inspector.Session(); s.connect();
		for (let i = 0; i < 3; i++) s.post('Runtime.evaluate', { expression: 'for (;;);', timeout: 10 }, (err) => console.log(err.message))
		s.post('Runtime.evaluate', { expression: '6 * 7', timeout: 20_000 }, (_, r) => console.log(r.result.value))`, mentions: "terminated\n42"},
	{name: "preview of the REPL", code: `
		import repl from 'node:repl'; import { PassThrough } from 'node:stream';
		const input = new PassThrough(), output = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
		const r = repl.start({ input, output, terminal: true, preview: true, useColors: false }); let text = '';
		await new Promise(seen => { output.on('data', d => (text += d).includes('// 42') && seen()); input.write('6 * 7') }); r.close(); console.log(text)`, mentions: "// 42"},
	{name: "folders of packages", code: `
		import fs from 'node:fs'; import { createRequire, globalPaths } from 'node:module'; const require = createRequire('/workspace/');
		for (const dir of ['/tmp/packages/near', '/tmp/home/.node_modules/far']) { fs.mkdirSync(dir, { recursive: true }); fs.writeFileSync(dir + '/index.js', 'module.exports = __dirname') }
		console.log(globalPaths, require('near'), require('far'))`, opts: runtime.RunOptions{Env: map[string]string{"NODE_PATH": "/tmp/packages", "HOME": "/tmp/home"}}, mentions: "/tmp/packages/near /tmp/home/.node_modules/far"},
	{name: "colors", code: colors, opts: runtime.RunOptions{Env: map[string]string{"FORCE_COLOR": "1"}}, mentions: "\x1b["},
	{name: "no colors", code: colors, opts: runtime.RunOptions{Env: map[string]string{"NO_COLOR": "1", "NODE_DISABLE_COLORS": "1"}}, mentions: "AssertionError"},
	{name: "children of node:test", code: nodeTest("'node:test'", "undefined"), mentions: `1 1 {"flags":[],"line":[],"main":true}`},
	{name: "children of node:test that another module starts", code: nodeTest("'node:' + 'test'", "['flags', 'main', 'options']"), mentions: `1 1 {"flags":[],"main":true}`},
	{name: "a module of NODE_OPTIONS before the program", code: `console.log(globalThis.before, import.meta.main, process.execArgv)`, opts: runtime.RunOptions{Env: map[string]string{"NODE_OPTIONS": "--import=data:text/javascript,globalThis.before=1", "NODE_PRESERVE_SYMLINKS_MAIN": "1"}}, mentions: "1 true []"},
	{name: "code from strings", code: `console.log(eval('1 + 1'), new Function('return 2')(), new (await import('node:vm')).SourceTextModule?.name)`},
	{name: "error's stack", code: `console.log(new Error('x').stack); Error.stackTraceLimit = 0; console.log(new Error('y').stack)`, mentions: "/main.mjs:1:13"},
}

const colors = `
	import assert from 'node:assert'; import { styleText } from 'node:util'; import tty from 'node:tty'
	try { assert.deepStrictEqual({ a: 1, b: [1, 2] }, { a: 2, b: [1, 3] }) } catch (err) { console.log(err.message, err) }
	console.log(styleText('red', 'red'), { a: 1 }, process.stdout.hasColors?.(), tty.WriteStream.prototype.getColorDepth())`

// nodeTest is a program that runs a test file with node:test, and prints how that file's
// process was started.
func nodeTest(module, keys string) string {
	return strings.NewReplacer("MODULE", module, "KEYS", keys).Replace(`
		import fs from 'node:fs'; const { run } = await import(MODULE);
		fs.writeFileSync('/tmp/a.test.cjs', "const test = require('node:' + 'test'), fs = require('fs'); test('passes', () => {}); test('fails', () => { throw new Error('no') });" +
			"const own = (list) => list.filter((arg) => /gaol|sigusr1/.test(arg)), line = fs.readFileSync('/proc/self/cmdline', 'utf8').split('\\0');" +
			"fs.writeFileSync('/tmp/seen', JSON.stringify({ flags: own(process.execArgv), line: own(line), main: require.main === module, options: process.env.NODE_OPTIONS }))");
		let passed = 0, failed = 0; const tests = run({ files: ['/tmp/a.test.cjs'] }).on('test:pass', () => passed++).on('test:fail', () => failed++);
		for await (const _ of tests); console.log(passed, failed, JSON.stringify(JSON.parse(fs.readFileSync('/tmp/seen', 'utf8')), KEYS))`)
}

// differences are the ways a program can see how it was started, and why. Remove entries
// that no longer differ.
var differences = map[string]string{
	"the flags in a report, which are the zygote's":                 `console.log(process.report.getReport().header.commandLine)`,
	"the libraries in a report, where the zygote's is":              `console.log(process.report.getReport().sharedObjects)`,
	"standard streams before their use, which exist":                `const n = process.getActiveResourcesInfo(); console.log(n)`,
	"SIGUSR1, which starts no debugger":                             `process.kill(process.pid, 'SIGUSR1'); await new Promise(r => setTimeout(r, 100)); const { url } = await import('node:inspector'); console.log(typeof url())`,
	"threads, of which V8's helpers are there when they are needed": `import fs from 'node:fs'; console.log(fs.readdirSync('/proc/self/task').length)`,
}

// A program's view of itself does not depend on the launcher.
func TestForkedProgramsDoTheSame(t *testing.T) {
	o := harness.Options(runtime.Options{Env: map[string]string{"OWN": "1"}, Limits: runtime.Limits{Memory: 128 << 20}})
	o.Launcher = runtime.LauncherExec
	if harness.InGVisor() { // where three Nodes use more
		o.Limits.Memory *= 2
	}
	started := harness.CreateExact(t, o)
	forked := harness.CreateForking(t, o)
	for what, code := range harness.SomeByName(differences) {
		if want, got := observe(t, started, code, runtime.RunOptions{}, ""), observe(t, forked, code, runtime.RunOptions{}, ""); want == got {
			t.Errorf("no difference any more: %s: %+v", what, got)
		}
	}
	for _, tc := range harness.Some(programs) {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "the command line after a title" && harness.InGVisor() { // whose /proc shows the zygote's
				return
			}
			want, got := observe(t, started, tc.code, tc.opts, tc.stdin), observe(t, forked, tc.code, tc.opts, tc.stdin)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("started (-), forked (+):\n%s", diff)
			}
			if all := want.Stdout + want.Stderr + want.Value; !strings.Contains(all, tc.mentions) {
				t.Errorf("%q is not in %.2000q: this test proves nothing", tc.mentions, all)
			}
		})
	}
}
