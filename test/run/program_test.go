package run

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// Programs behave as in plain Node.
func TestPrograms(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct {
		name, code string
		opts       runtime.RunOptions
		want       runtime.Result // stdout, exit code, cause and value are compared
		stderr     string         // a part of it
	}{
		{name: "nothing", code: ``},
		{name: "console", code: `console.log('hi'); console.error('err')`, want: runtime.Result{Stdout: []byte("hi\n")}, stderr: "err\n"},
		{name: "value", code: `__return({ a: [1, 'x', null] })`, want: runtime.Result{Value: []byte(`{"a":[1,"x",null]}`)}},
		{name: "last value", code: `__return(1); globalThis.__return(2)`, want: runtime.Result{Value: []byte(`2`)}},
		{name: "undefined", code: `__return(undefined)`, want: runtime.Result{Value: []byte(`null`)}},
		{name: "NaN", code: `__return(NaN)`, want: runtime.Result{Value: []byte(`null`)}},
		{name: "value, then failure", code: `__return(1); process.exit(4)`, want: runtime.Result{Value: []byte(`1`), ExitCode: 4}},
		{
			name: "top-level await and node: modules",
			code: `import { setTimeout as sleep } from 'node:timers/promises';
				const { readFile } = await import('node:fs/promises');
				console.log(await sleep(5, 'slept'), (await readFile('/etc/passwd', 'utf8')).includes('node'))`,
			want: runtime.Result{Stdout: []byte("slept true\n")},
		},
		{
			name: "uncaught error", code: "\nconst a = 1;\nfunction f() { throw new Error('boom') }\nf();", want: runtime.Result{ExitCode: 1},
			stderr: "Error: boom\n    at f (file:///run/gaol/N/main.mjs:3:22)\n    at file:///run/gaol/N/main.mjs:4:1\n",
		},
		{name: "exit code", code: `process.exit(7)`, want: runtime.Result{ExitCode: 7}},
		{name: "exit handlers", code: `process.on('exit', c => console.log('bye', c)); process.exitCode = 3`, want: runtime.Result{ExitCode: 3, Stdout: []byte("bye 3\n")}},
		{name: "unsettled await", code: `await new Promise(() => {})`, want: runtime.Result{ExitCode: 13}, stderr: "unsettled top-level await"},
		{name: "unhandled rejection", code: `Promise.reject(new Error('no'))`, want: runtime.Result{ExitCode: 1}, stderr: "Error: no"},
		{name: "syntax error", code: "const a = 1;\nconst b = 2;\nlet c = = 3;\n", want: runtime.Result{ExitCode: 1}, stderr: "file:///run/gaol/N/main.mjs:3\nlet c = = 3;\n        ^\n"},
		{name: "missing module", code: `import 'nosuch'`, want: runtime.Result{ExitCode: 1}, stderr: "Cannot find package 'nosuch' imported from /workspace/main.mjs"},
		{
			name: "standard input", code: `let s = ''; for await (const c of process.stdin) s += c; console.log(s.toUpperCase())`,
			opts: runtime.RunOptions{Stdin: strings.NewReader("some text")}, want: runtime.Result{Stdout: []byte("SOME TEXT\n")},
		},
		{name: "empty standard input", code: `let n = 0; for await (const c of process.stdin) n += c.length; console.log(n)`, want: runtime.Result{Stdout: []byte("0\n")}},
		{name: "UTF-8", code: `console.log('grüße 日本語 🎉')`, want: runtime.Result{Stdout: []byte("grüße 日本語 🎉\n")}},
		{name: "binary", code: `process.stdout.write(Buffer.from([0, 255, 254, 10, 128]))`, want: runtime.Result{Stdout: []byte{0, 255, 254, 10, 128}}},
		{
			name: "Intl", code: `console.log((1234567.891).toLocaleString('de-DE'), new Intl.DateTimeFormat('fr-FR', { dateStyle: 'full', timeZone: 'Asia/Tokyo' }).format(0), 'ä'.localeCompare('z', 'sv'))`,
			want: runtime.Result{Stdout: []byte("1.234.567,891 jeudi 1 janvier 1970 1\n")},
		},
		{name: "time zone", code: `console.log(new Date(0).getHours())`, opts: runtime.RunOptions{Env: map[string]string{"TZ": "Asia/Tokyo"}}, want: runtime.Result{Stdout: []byte("9\n")}},
		{
			name: "process", opts: runtime.RunOptions{Args: []string{"--flag", "x y"}, Cwd: "/tmp", Name: "job.mjs"},
			code: `console.log(JSON.stringify([process.argv, process.execArgv, process.cwd(), import.meta.url, import.meta.filename, import.meta.dirname, import.meta.main]))`,
			want: runtime.Result{Stdout: []byte(`[["/usr/local/bin/node","/run/gaol/N/job.mjs","--flag","x y"],[],"/tmp","file:///run/gaol/N/job.mjs","/run/gaol/N/job.mjs","/run/gaol/N",true]` + "\n")},
		},
		{name: "TypeScript", opts: runtime.RunOptions{Name: "main.ts"}, code: `interface A { n: number }; const a: A = { n: 4 }; console.log(a.n as number)`, want: runtime.Result{Stdout: []byte("4\n")}},
		{name: "CommonJS", opts: runtime.RunOptions{Name: "main.cjs"}, code: `console.log(require.main === module, __filename, require('os').hostname()); __return(1)`, want: runtime.Result{Stdout: []byte("true /run/gaol/N/main.cjs secure-exec\n"), Value: []byte("1")}},
		{
			name: "globals", code: `console.log(Object.getOwnPropertyNames(globalThis).filter(n => n.startsWith('_')).join(), Object.keys(globalThis).includes('__return'))`,
			want: runtime.Result{Stdout: []byte("__return false\n")},
		},
		{
			name: "child process", code: `import { execFileSync, spawn } from 'node:child_process';
				process.stdout.write(execFileSync('sh', ['-c', 'echo $((6 * 7)); id -un']));
				spawn('node', ['-p', '1 + 1'], { stdio: 'inherit' })`,
			want: runtime.Result{Stdout: []byte("42\nnode\n2\n")},
		},
		{
			name: "worker", code: `import { Worker, isMainThread, parentPort } from 'node:worker_threads';
				if (isMainThread) new Worker(new URL(import.meta.url)).on('message', m => console.log(m));
				else parentPort.postMessage('from ' + typeof __return)`,
			want: runtime.Result{Stdout: []byte("from undefined\n")},
		},
		{
			name: "WebAssembly", code: `const bytes = Uint8Array.of(0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11);
				const { instance } = await WebAssembly.instantiate(bytes); console.log(instance.exports.add(40, 2))`,
			want: runtime.Result{Stdout: []byte("42\n")},
		},
		{
			name: "server and client on loopback", code: `import http from 'node:http';
				const s = http.createServer((q, r) => r.end('pong')).listen(0, '127.0.0.1', async () => {
					console.log(await (await fetch('http://localhost:' + s.address().port)).text()); s.close() })`,
			want: runtime.Result{Stdout: []byte("pong\n")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := harness.Run(t, rt, tc.code, tc.opts)
			if harness.UnnumberPrograms(res.Stdout) != string(tc.want.Stdout) || res.ExitCode != tc.want.ExitCode || res.Cause != tc.want.Cause || string(res.Value) != string(tc.want.Value) {
				t.Errorf("stdout %q, exit code %d, cause %q, value %s\nstderr %s", res.Stdout, res.ExitCode, res.Cause, res.Value, res.Stderr)
			}
			if !strings.Contains(harness.UnnumberPrograms(res.Stderr), tc.stderr) || tc.stderr == "" && len(res.Stderr) > 0 && tc.name != "TypeScript" {
				t.Errorf("stderr %q", res.Stderr)
			}
			if strings.Contains(string(res.Stderr), "prelude") {
				t.Errorf("the prelude shows in %q", res.Stderr)
			}
		})
	}
}

// A later run imports a file that an earlier run wrote.
func TestFilesPersist(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	harness.Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync('lib.mjs', 'export const n = 41')`, runtime.RunOptions{})
	res := harness.Run(t, rt, `import { n } from './lib.mjs'; __return(n + 1)`, runtime.RunOptions{})
	if string(res.Value) != "42" {
		t.Errorf("value %s, stderr %s", res.Value, res.Stderr)
	}
}

func TestReturnThrows(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Value: 1000}})
	for name, tc := range map[string]struct{ code, message string }{
		"cyclic":   {`const a = {}; a.a = a; __return(a)`, "TypeError: value.a: it is value again: cycles cannot be encoded as JSON"},
		"bigint":   {`__return(1n)`, "TypeError: value: a BigInt cannot be encoded as JSON; make it a string or a number"},
		"function": {`__return(() => 1)`, "TypeError: value: a function cannot be encoded as JSON"},
		"too big":  {`__return('x'.repeat(1000))`, "RangeError: __return: the value has 1002 bytes of JSON, the limit is 1000"},
		"own":      {`__return({ toJSON() { throw new Error('mine') } })`, "Error: mine"},
	} {
		res := harness.Run(t, rt, "__return('before');\n"+tc.code, runtime.RunOptions{})
		if res.ExitCode != 1 || !strings.Contains(string(res.Stderr), tc.message) || string(res.Value) != `"before"` {
			t.Errorf("%s: exit code %d, value %s, stderr %s", name, res.ExitCode, res.Value, res.Stderr)
		}
		if strings.Contains(string(res.Stderr), "prelude") || !strings.Contains(string(res.Stderr), "main.mjs:2") {
			t.Errorf("%s: stack %s", name, res.Stderr)
		}
	}
	res := harness.Run(t, rt, `try { __return('x'.repeat(2000)) } catch (e) { __return(e.name) }`, runtime.RunOptions{})
	if string(res.Value) != `"RangeError"` {
		t.Errorf("after a caught error: %s", res.Value)
	}
}

func TestExecHasNoReturn(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res, err := rt.Exec(t.Context(), `console.log(typeof __return, process.argv.length)`, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "undefined 2\n" || res.Value != nil {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestStreaming(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	var got bytes.Buffer
	res := harness.Run(t, rt, `
		const line = Buffer.alloc(1 << 20);
		for (let i = 0; i < 40; i++) { line.fill(i); if (!process.stdout.write(Buffer.from(line))) await new Promise(r => process.stdout.once('drain', r)) }`,
		runtime.RunOptions{OnStdout: func(b []byte) { got.Write(b) }})
	if res.ExitCode != 0 || got.Len() != 40<<20 {
		t.Fatalf("exit code %d, %d bytes, stderr %s", res.ExitCode, got.Len(), res.Stderr)
	}
	for i, b := range got.Bytes() {
		if int(b) != i>>20 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	if len(res.Stdout) != 16<<20 || !res.Truncated.Stdout || res.Truncated.Stderr || !bytes.Equal(res.Stdout, got.Bytes()[:16<<20]) {
		t.Errorf("captured %d bytes, truncated %+v", len(res.Stdout), res.Truncated)
	}
}

func TestFiftyAtOnce(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			code := fmt.Sprintf(`import fs from 'node:fs'; fs.writeFileSync('f%d', '%d'); console.log(%d); __return(Number(fs.readFileSync('f%d', 'utf8')))`, i, i, i, i)
			res, err := rt.Run(t.Context(), code, runtime.RunOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			if want := fmt.Sprint(i); string(res.Value) != want || string(res.Stdout) != want+"\n" || res.ExitCode != 0 {
				t.Errorf("run %d: %s, %s, %d, %s", i, res.Value, res.Stdout, res.ExitCode, res.Stderr)
			}
		})
	}
	wg.Wait()
}
