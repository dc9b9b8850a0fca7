package escape

import (
	"strings"
	"testing"
	"time"

	"gaol/runtime/snippets"
	"gaol/test/harness"
)

const second = time.Second

// deeds are attacks by snippets that have reached Node: on their own report, on other
// snippets, on the host and on its resources.
var deeds = []attack{
	// Other threads and processes, which search for secrets.
	{"worker thread", `
		const { Worker } = await import('node:worker_threads');
		const w = new Worker(search + ';search(process, ' + JSON.stringify(places) + ").then((l) => require('worker_threads').parentPort.postMessage(l))", { eval: true });
		export const found = await new Promise((done) => w.on('message', done)), reached = Array.isArray(found);` + leave, 0, wantReached},
	{"child process", `
		const { execFileSync } = await import('node:child_process');
		export const found = execFileSync(process.execPath, ['-e', search + ';search(process, ' + JSON.stringify(places) + ').then((l) => console.log(JSON.stringify(l)))'], { encoding: 'utf8' });
		export const reached = Array.isArray(JSON.parse(found));` + leave, 0, wantReached},
	{"process left behind", `
		const { spawn } = await import('node:child_process');
		spawn('sh', ['-c', 'while :; do echo secret-left-0123456789abcdef > /tmp/left; sleep 0.1; done'], { detached: true, stdio: 'ignore' }).unref();
		export const reached = true;`, 0, wantReached},
	{"debugger", `
		const inspector = await import('node:inspector');
		try { inspector.open(0, '0.0.0.0') } catch {}
		process.kill(process.pid, 'SIGUSR1');
		export const reached = true;` + leave, 0, nil},

	// The report.
	{"replaced built-ins", `
		export const a = 1;
		for (const o of [JSON, Promise, Promise.prototype, Object, Array.prototype, Map.prototype, Reflect, console, String.prototype, process, globalThis]) {
			for (const key of Reflect.ownKeys(o)) {
				try { o[key] = () => { throw 'replaced' } } catch {}
			}
		}`, 3 * second, nil},
	{"polluted prototypes", `
		export const a = { b: [1] };
		for (const name of ['facts', 'derived', 'errors', 'then', 'get', 'set', 'value', 'toJSON', 'length', 'Code', 'message', 'stack', 'code', '0']) {
			Object.defineProperty(Object.prototype, name, { get() { return () => 'polluted' }, set() {}, configurable: true });
		}`, 3 * second, nil},
	{"forged report", `
		export const a = 1;
		const send = globalThis.__evaluated;
		for (const value of ['x'.repeat(1e7), { facts: '[]' }, { facts: '{"a":', derived: 1 }, { errors: Array(1e5).fill('x'.repeat(1000)) }, null, { timedOut: false, more: 1 }]) {
			try { send?.(value) } catch {}
		}
		process.exit(0);`, 3 * second, nil},
	{"forged report through JSON", `
		export const a = 1;
		Object.prototype.toJSON = function () { return '{"facts":"' + '{'.repeat(1e6) };`, 3 * second, nil},
	{"forged frames", `
		const fs = await import('node:fs');
		const { execFileSync } = await import('node:child_process');
		const frames = [Buffer.alloc(1 << 20, 255), Buffer.alloc(1000), Buffer.from('{"facts":"{}"}\n'.repeat(100)), Buffer.from([0, 0, 0, 8, 123, 125, 10, 0, 127, 255, 255, 255])];
		export const reached = fs.readdirSync('/proc/self/fd').length > 3;
		for (const fd of fs.readdirSync('/proc/self/fd')) {
			for (const frame of frames) {
				try { fs.writeSync(Number(fd), frame) } catch {}
			}
		}`, 3 * second, nil},
	{"closed descriptors", `
		const fs = await import('node:fs');
		for (let fd = 3; fd < 200; fd++) {
			try { fs.closeSync(fd) } catch {}
		}`, 3 * second, nil},
	{"replaced interrupt", `globalThis.__interrupted = () => { for (;;); }; for (;;);`, second, wantTimeout},
	{"endless exit handler", `process.on('exit', () => { for (;;); });`, second, wantTimeout},
	{"swallowed errors", `process.setUncaughtExceptionCaptureCallback(() => {}); setTimeout(() => { throw new Error('x') }); export const a = 1;`, second, nil},
	{"hostile errors", `
		const e = new Error('x'.repeat(1e6));
		e.cause = e;
		e.stack = { toString() { throw e } };
		e.code = new Proxy({}, { get() { throw e } });
		throw e;`, 3 * second, wantErrors},
	{"thrown proxy", `throw new Proxy(function () {}, { get() { throw 1 }, getPrototypeOf() { throw 2 }, ownKeys() { throw 3 } });`, 3 * second, wantErrors},
	{"hostile exports", `
		export const deep = {};
		let at = deep;
		for (let i = 0; i < 1e5; i++) at = at.a = {};
		export const loop = { toJSON() { return new Proxy({}, { ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: () => loop }) } };
		export const thrown = { get a() { throw 1 } };`, 3 * second, nil},
	{"huge state", `export const a = 'x'.repeat(5e7), b = Array(1e6).fill({ c: 1 });`, 5 * second, nil},

	// Its own process, and other processes.
	{"exit", `export const a = 1; process.exit(0);`, 0, nil},
	{"abort", `process.abort();`, 0, wantErrors},
	{"kill itself", `process.kill(process.pid, 'SIGKILL');`, 0, wantErrors},
	{"kill all", `
		for (const pid of [-1, 1, 0, process.ppid, -process.pid, ...Array.from({ length: 1000 }, (_, i) => i + 1)]) {
			for (const signal of ['SIGTERM', 'SIGSTOP', 'SIGKILL']) {
				if (pid !== process.pid) try { process.kill(pid, signal) } catch {}
			}
		}`, 3 * second, nil},
	{"stop itself", `process.kill(process.pid, 'SIGSTOP');`, second, wantTimeout},
	{"rights", `
		export const done = [];
		for (const name of ['setuid', 'setgid', 'seteuid', 'setegid']) {
			try { process[name](0); done.push(name) } catch {}
		}
		try { process.getBuiltinModule('os').setPriority(-20); done.push('priority') } catch {}
		try { process.getBuiltinModule('os').setPriority(1, 5); done.push('another priority') } catch {}
		const fs = process.getBuiltinModule('fs');
		for (const path of ['/etc/passwd', '/usr/bin/node', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/fs/cgroup/cgroup.procs', '/proc/1/mem', '/dev/mem', process.execPath]) {
			try { fs.closeSync(fs.openSync(path, 'r+')); done.push(path) } catch {}
		}
		if (done.length === 0) done.push('nothing');`, 0, func(t *testing.T, out *snippets.Output) {
		if string(out.Facts) != `{"done":["nothing"]}` {
			t.Errorf("%s, %q", out.Facts, out.Errors)
		}
	}},
	{"packages written", `
		import { createSystem } from '@directive-run/core';
		const fs = process.getBuiltinModule('fs');
		export const written = [];
		createSystem.left = Object.getPrototypeOf(createSystem).left = 1;
		export const folders = process.getBuiltinModule('child_process').execFileSync('sh', ['-c', 'find / -path /proc -prune -o -name node_modules -prune -print 2>/dev/null; :'], { encoding: 'utf8' }).trim().split('\n').slice(0, 50);
		folders.push('/packages', ...fs.readdirSync('/packages').map((name) => '/packages/' + name));
		for (const folder of folders) {
			try { fs.writeFileSync(folder + '/left.js', ''); written.push(folder) } catch {}
		}`, 0, func(t *testing.T, out *snippets.Output) {
		if !strings.Contains(string(out.Facts), `"written":[]`) || !strings.Contains(string(out.Facts), "/node_modules") || !strings.Contains(string(out.Facts), "/packages/") {
			t.Errorf("%.1000s, %q", out.Facts, out.Errors)
		}
	}},

	// Time.
	{"endless loop", `for (;;);`, second, wantTimeout},
	{"endless microtasks", `(function f() { Promise.resolve().then(f) })();`, second, wantTimeout},
	{"endless ticks", `(function f() { process.nextTick(f) })();`, second, wantTimeout},
	{"endless wait", `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`, second, wantTimeout},
	{"endless regular expression", `/(a+)+$/.test('a'.repeat(50) + 'b');`, second, wantTimeout},
	{"endless synchronous child", `process.getBuiltinModule('child_process').execSync('sleep 1000');`, second, wantTimeout},

	// Memory, processes, disk.
	{"heap", `const list = []; for (;;) list.push(Array(1000).fill(1.5));`, 0, wantErrors},
	{"buffers", `const list = []; for (;;) list.push(Buffer.alloc(1 << 20, 1));`, 0, wantErrors},
	{"strings", `let s = 'x'.repeat(1 << 20); const list = []; for (let i = 0; ; i++) list.push(Buffer.from(s + i).toString('latin1'));`, 0, wantErrors},
	{"WebAssembly's memory", `
		const list = [];
		for (;;) {
			const m = new WebAssembly.Memory({ initial: 160 });
			new Uint8Array(m.buffer).fill(1);
			list.push(m);
		}`, 0, wantErrors},
	{"fork bomb", `process.getBuiltinModule('child_process').spawnSync('sh', ['-c', 'f() { f | f & }; f; while :; do sleep 0.1 & done']);`, second, nil},
	{"threads", `
		const { Worker } = await import('node:worker_threads');
		for (let i = 0; i < 100; i++) new Worker('for (;;);', { eval: true }).on('error', () => {});`, second, nil},
	{"disk", `
		const fs = process.getBuiltinModule('fs');
		export const done = [];
		for (const folder of ['/workspace', '/tmp', '/dev/shm', '/home/node']) {
			try {
				for (let i = 0; i < 100; i++) fs.appendFileSync(folder + '/left', Buffer.alloc(1 << 20));
				done.push(folder);
			} catch {}
			try {
				for (let i = 0; i < 100_000; i++) fs.mkdirSync(folder + '/left-' + i);
				done.push(folder);
			} catch {}
		}
		export const reached = done.length === 0;`, 0, wantFull},
	{"crash dumps", `
		try { process.report.writeReport('/workspace/left') } catch {}
		try { process.getBuiltinModule('v8').writeHeapSnapshot('/workspace/left.heapsnapshot') } catch {}
		try { process.dlopen({ exports: {} }, '/proc/self/exe') } catch {}
		process.getBuiltinModule('v8').setFlagsFromString('--stack-size=100000000');
		(function f() { f() })();`, 0, wantErrors},

	// Output.
	{"lines without end", `for (;;) console.log('x'.repeat(100));`, 6 * second, wantCut},
	{"a long line", `console.log('x'.repeat(3e7));`, 3 * second, nil},
	{"an endless stream", `process.getBuiltinModule('child_process').spawnSync('sh', ['-c', 'yes >&1 & yes >&2'], { stdio: 'inherit' });`, 2 * second, nil},
	{"many errors", `for (let i = 0; i < 1e5; i++) Promise.reject(new Error('x'.repeat(1000)));`, 3 * second, wantErrors},
	{"escape sequences", `console.log('\x1b]0;title\x07\x1b[2J\r\n[error] forged\u2028'); export const reached = true;`, 0, wantReached},
	{"hostile log arguments", `
		console.log({ get a() { throw 1 } }, new Proxy({}, { ownKeys() { throw 2 } }), { toString: null, toJSON() { for (;;); } });`, second, wantTimeout},
}

func wantTimeout(t *testing.T, out *snippets.Output) {
	t.Helper()
	if !out.TimedOut || len(out.Errors) == 0 {
		t.Errorf("no timeout: %.1000q", out.Errors)
	}
}

func wantErrors(t *testing.T, out *snippets.Output) {
	t.Helper()
	if len(out.Errors) == 0 {
		t.Errorf("no errors: %.1000s, %.1000q", out.Facts, out.Logs)
	}
}

func wantCut(t *testing.T, out *snippets.Output) {
	t.Helper()
	if n := len(out.Logs); n < 100 || !strings.HasPrefix(out.Logs[n-1], "[warn] ") {
		t.Errorf("%d lines without the last one: %.300q", n, out.Logs[max(0, n-1):])
	}
}

// wantFull checks that the disk was full, or the memory of gVisor, which does not count files.
func wantFull(t *testing.T, out *snippets.Output) {
	t.Helper()
	if harness.InGVisor() && len(out.Errors) == 1 && strings.HasPrefix(out.Errors[0], "out of memory:") {
		return
	}
	wantReached(t, out)
}
