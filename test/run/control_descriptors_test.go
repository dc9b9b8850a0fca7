package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/vfs/hostfs"
)

// Whatever a program does with its descriptors, at most its own calls or the program itself
// fail.
func TestControlDescriptors(t *testing.T) {
	w := &checkingHost{size: 100_000}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}})
	harness.Install(t, rt, "files.node")
	stop := startHonestRuns(t, rt)
	defer stop()
	const many = `
		const tries = async () => {
			const now = Array.from({ length: 50 }, (_, i) => note(i)[0]);
			const later = await Promise.all(Array.from({ length: 400 }, (_, i) => note.async(i, 'x'.repeat(i)).then(([n]) => n)));
			const sizes = await Promise.all(Array.from({ length: 20 }, () => large.async().then(x => x.length)));
			return [now.every((n, i) => n === i), later.every((n, i) => n === i), sizes.every(n => n === 100000)].join();
		};
		const code = f => { try { return String(f()) } catch (err) { return err.code } };`
	for _, tc := range harness.Some([]struct{ name, code, want string }{
		{"both are non-blocking", `files.wait(3, 0); files.wait(5, 0); __return(await tries())`, `"true,true,true"`},
		{"both are blocking, after they were not", `await note.async(1); files.wait(3, 1); files.wait(5, 1); __return(code(() => note(7)))`, `"7"`},
		{"one page each", `files.size(3, 4096); files.size(5, 4096); __return(await tries())`, `"true,true,true"`},
		{"a megabyte each", `files.size(3, 1 << 20); files.size(5, 1 << 20); __return(await tries())`, `"true,true,true"`},
		{"calls by a descriptor of its own", `files.dup(3, 30); fs.closeSync(3); files.dup(30, 3); __return(await tries())`, `"true,true,true"`},
		{"3 is closed", `__return(1); fs.closeSync(3); console.log(code(() => note(1)), await note.async(1).catch(err => err.code))`, `1 ERR_HOST_CLOSED ERR_HOST_CLOSED`},
		{"5 is closed", `__return(2); fs.closeSync(5); console.log(code(() => note(1)), await note.async(1).catch(err => err.code))`, `2 ERR_HOST_CLOSED ERR_HOST_CLOSED`},
		{"5 is closed amid calls", `__return(3); for (let i = 0; i < 300; i++) large.async().catch(() => {}); fs.closeSync(5); process.exit()`, `3`},
		{"3 is the way of answers", `__return(4); files.dup(5, 3); console.log(code(() => note(1)))`, `4 ERR_HOST_CLOSED`},
		{"5 is the way of calls", `__return(5); files.dup(3, 5); console.log(code(() => note(1)))`, `5 ERR_HOST_CLOSED`},
		{"3 is standard output", `__return(6); files.dup(1, 3); console.log(code(() => note(1)).length)`, `6`},
		{"5 is /dev/null", `__return(7); files.dup(fs.openSync('/dev/null', 'r+'), 5); console.log(code(() => note(1)))`, `7 ERR_HOST_CLOSED`},
		{"both are /dev/null", `__return(8); const n = fs.openSync('/dev/null', 'r+'); files.dup(n, 3); files.dup(n, 5); console.log(code(() => note(1)), await note.async(1).catch(err => err.code))`, `8 ERR_HOST_CLOSED ERR_HOST_CLOSED`},
		{"a child has both", `
			const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', raw + 'for (let i = 1; i < 100; i++) { send(call(i, 2, "[" + i + "]")); console.log(receive().json) }'], { stdio: [0, 'pipe', 2, 3, 4, 5] });
			__return([status, String(stdout).split('\n').length, note(1)])`, `[0,100,[1]]`},
		{"a Worker has both", `
			const w = new Worker(raw.replace("import fs from 'node:fs'", 'const fs = require("fs")') + 'for (let i = 1; i < 100; i++) { send(call(i, 2, "[" + i + "]")); receive() }', { eval: true });
			await new Promise(done => w.on('exit', done)); __return(note(1))`, `[1]`},
		{"frames among its own", `
			const w = new Worker(raw.replace("import fs from 'node:fs'", 'const fs = require("fs")') + 'for (let i = 1; i < 1000; i++) send(call(i + 1e6, 2, "[" + i + "]"))', { eval: true });
			const ended = new Promise(done => w.on('exit', done)); __return(await tries()); await ended`, `"true,true,true"`},
	}) {
		res := harness.Run(t, rt, `import { createRequire } from 'node:module'; import { Worker } from 'node:worker_threads'; import { spawnSync } from 'node:child_process';`+raw+
			fmt.Sprintf("const raw = %q;", strings.ReplaceAll(raw, "\t", ""))+many+`
			const files = createRequire('/workspace/')('/workspace/files.node');`+tc.code, runtime.RunOptions{Timeout: time.Minute})
		if got := strings.TrimSpace(string(res.Value) + " " + string(res.Stdout)); !strings.HasPrefix(got, tc.want) || res.ExitCode != 0 {
			t.Errorf("%s: %.300s, exit code %d, cause %q, %s; want %s", tc.name, got, res.ExitCode, res.Cause, res.Stderr, tc.want)
		}
		w.check(t)
	}
	checkHonestRun(t, rt)
}

// Threads that read each other's results lose them. The run ends all the same.
func TestControlReadByThreads(t *testing.T) {
	w := &checkingHost{}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}})
	res, _ := runInTime(t, rt, `
		import { Worker } from 'node:worker_threads';
		for (let i = 0; i < 4; i++) new Worker('const b = Buffer.alloc(7); for (;;) require("fs").readSync(5, b)', { eval: true });
		await new Promise(done => setTimeout(done, 200));
		__return(1);
		for (;;) await Promise.race([...Array.from({ length: 100 }, () => note.async('x')), new Promise(done => setTimeout(done, 10))])`, &runtime.RunOptions{Timeout: 2 * time.Second}, func(res *runtime.Result) bool { return len(res.Value) > 0 })
	if string(res.Value) != "1" || res.Cause != runtime.CauseTimeout && res.ExitCode == 0 {
		t.Errorf("value %s, exit code %d, cause %q, %s", res.Value, res.ExitCode, res.Cause, res.Stderr)
	}
	w.check(t)
	checkHonestRun(t, rt)
}

// Runs of one runtime cannot open each other's control channels through /proc, as they can
// open the streams of commands: the host created these pipes.
func TestControlOfAnotherRun(t *testing.T) {
	w := &checkingHost{}
	w.over.Store("forged", true)
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}})
	stop := harness.StartProgram(t, rt, raw+`
		let refused = 0;
		console.log('up');
		const { O_NONBLOCK, O_RDONLY, O_WRONLY } = fs.constants;
		for (;;) {
			for (const pid of fs.readdirSync('/proc')) for (const n of [3, 4, 5]) for (const flags of ['r', 'w', 'r+', O_RDONLY | O_NONBLOCK, O_WRONLY | O_NONBLOCK]) {
				if (!(pid > 1 && pid != process.pid)) continue;
				try {
					const fd = fs.openSync('/proc/' + pid + '/fd/' + n, flags);
					fs.writeSync(2, 'opened ' + n + '\n');
					fs.writeSync(fd, call(1e9, 2, '["forged"]'));
					process.exit(1);
				} catch (err) { if (err.code === 'EACCES') refused++; else if (err.code !== 'ENOENT') process.exit(1) }
			}
			fs.writeFileSync('/tmp/counted', String(refused));
			fs.renameSync('/tmp/counted', '/tmp/refused'); // the run is killed while it writes
			await new Promise(r => setTimeout(r, 1));
		}`)
	for range harness.Fewer(5, 2) {
		res := harness.Run(t, rt, `
			import fs from 'node:fs';
			for (let i = 0; i < 200; i++) { note(i); await note.async(i); if (i % 50 === 0) await new Promise(r => setTimeout(r, 20)) }
			const refused = () => { try { return Number(fs.readFileSync('/tmp/refused', 'utf8')) } catch { return 0 } };
			for (const late = Date.now() + 20_000; refused() === 0 && Date.now() < late;) await new Promise(r => setTimeout(r, 5));
			__return([3, 4, 5].map(n => fs.fstatSync(n).mode & 0o077))`, runtime.RunOptions{})
		if string(res.Value) != "[0,0,0]" {
			t.Errorf("value %s, exit code %d, %s", res.Value, res.ExitCode, res.Stderr)
		}
	}
	stop()
	w.check(t)
	res := harness.Run(t, rt, `__return(Number(require('fs').readFileSync('/tmp/refused', 'utf8')))`, runtime.RunOptions{Name: "main.cjs"})
	if string(res.Value) == "0" {
		t.Error("nothing was refused: this test proves nothing")
	}
}

// After Run has returned, its functions are not called again, even if a process it left or
// another run still writes calls.
func TestControlAfterTheEnd(t *testing.T) {
	var kill sync.Map
	w := &checkingHost{onNote: func(name string) {
		if cancel, ok := kill.Load(name); ok {
			cancel.(context.CancelFunc)()
		}
	}}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}, MaxConcurrentRuns: 8})
	const exitSoon = `const exitSoon = () => setTimeout(() => fs.existsSync(name) ? process.exit() : exitSoon(), 5);`
	flood := `try { for (let i = 1; ; i++) send(call(i, 2, name)) } catch {} for (;;);`
	for what, code := range map[string]string{
		"the program itself, to its exit": `setTimeout(() => { receive(); process.exit() }, 30); let i = 1; const ask = (n) => { for (let k = 0; k < n; k++) send(call(i++, 2, name)) }; const more = () => { ask(100); for (let k = 0; k < 100; k++) receive(); setImmediate(more) }; ask(200); more()`,
		"a program that is killed":        flood,
		"a child":                         `spawn(process.execPath, ['--input-type=module', '-e', raw + 'const name = process.argv[1]; send(call(0, 2, name)); receive(); fs.writeFileSync(name, ""); ` + flood + `', name], { stdio: [0, 1, 2, 3, 4, 5], detached: true }).unref(); exitSoon()`,
		"a Worker":                        `new Worker(raw.replace("import fs from 'node:fs'", 'const fs = require("fs")') + 'const name = process.argv[2]; send(call(0, 2, name)); receive(); fs.writeFileSync(name, ""); ` + flood + `', { eval: true, argv: [name] }); exitSoon()`,
		"in the midst of a frame":         `for (let i = 1; i < 1000; i++) send(call(i, 2, name)); receive(); send(call(1, 2, name).subarray(0, 12)); process.exit()`,
	} {
		var all sync.WaitGroup
		for i := range harness.Fewer(8, 2) {
			all.Go(func() {
				name := fmt.Sprintf("%s %d", what, i)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if code == flood {
					kill.Store(name, cancel)
				}
				res, err := rt.Run(ctx, `import { Worker } from 'node:worker_threads'; import { spawn } from 'node:child_process';`+raw+
					fmt.Sprintf("const raw = %q; const name = %q;", strings.ReplaceAll(raw, "\t", ""), fmt.Sprintf("[%q]", name))+exitSoon+code, runtime.RunOptions{})
				w.over.Store(name, true)
				if res == nil || res.Cause != "" && code != flood || len(res.Stderr) > 0 {
					t.Errorf("%s: %+v, %v", name, res, err)
				} else if len(res.Calls) == 0 {
					t.Errorf("%s: no call arrived: this test proves nothing", name)
				}
			})
		}
		all.Wait()
	}
	time.Sleep(50 * time.Millisecond)
	w.check(t)
	checkHonestRun(t, rt)
}

// A run can pass its control descriptor to another run, which can make calls as long as the
// first run lives.
func TestControlSharedWithAnotherRun(t *testing.T) {
	w := &checkingHost{}
	rt := w.runtime(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}})
	pass := harness.Install(t, rt, "pass")
	taker := harness.StartCommand(t, rt, pass, "call", "/tmp/call")
	w.onNote = func(name string) {
		if err := rt.FS().WriteFile("/workspace/called", nil, hostfs.WriteOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range 3 {
		w.over.Delete("given")
		res := harness.Run(t, rt, `
			import { spawnSync } from 'node:child_process';
			import { existsSync, rmSync } from 'node:fs';
			rmSync('/workspace/called', { force: true });
			__return(spawnSync('/workspace/pass', ['give', '/tmp/call'], { stdio: ['ignore', 1, 2, 3] }).status);
			while (!existsSync('/workspace/called')) await new Promise(r => setTimeout(r, 5))`, runtime.RunOptions{Timeout: time.Minute})
		w.over.Store("given", true)
		if string(res.Value) != "0" || len(res.Calls) == 0 {
			t.Errorf("value %s, %d calls, exit code %d, %s", res.Value, len(res.Calls), res.ExitCode, res.Stderr)
		}
		for _, want := range []string{"taken", "over"} {
			if got := taker.Next(t); got != want {
				t.Errorf("%s: this test proves nothing", got)
			}
		}
	}
	time.Sleep(50 * time.Millisecond)
	w.check(t)
	checkHonestRun(t, rt)
}
