package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// Each hostile program ends as expected, and the next run works.
func TestHostile(t *testing.T) {
	limits := runtime.Limits{Memory: 128 << 20, Disk: 8 << 20, Output: 1 << 20}
	limitsFiles := harness.Needs(t, runtime.FeatureFiles)
	if limitsFiles {
		limits.Files = 500
	}
	rt := harness.Create(t, runtime.Options{Limits: limits})
	for _, tc := range []struct {
		name, code string
		opts       runtime.RunOptions
		cause      runtime.Cause
		exitCode   int
		stdout     string
	}{
		{name: "endless loop", code: `console.log('before'); for (;;);`, cause: runtime.CauseTimeout, exitCode: 137, stdout: "before\n"},
		{name: "endless wait", code: `console.log('before'); setInterval(() => {}, 1000)`, cause: runtime.CauseTimeout, exitCode: 137, stdout: "before\n"},
		{name: "deaf to signals", code: `for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => {}); console.log('deaf'); for (;;);`, cause: runtime.CauseTimeout, exitCode: 137, stdout: "deaf\n"},
		{name: "allocation of objects", code: `const a = []; for (;;) a.push({ a: [1, 2, 3] })`, cause: runtime.CauseMemory, exitCode: 134},
		{name: "allocation of buffers", code: `const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))`, cause: runtime.CauseMemory, exitCode: 137},
		{
			name: "allocation by a child", cause: runtime.CauseMemory, stdout: "child SIGKILL\n",
			code: `import { spawnSync } from 'node:child_process';
				const r = spawnSync(process.execPath, ['-e', 'const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))']); console.log('child', r.signal)`,
		},
		{
			name: "fork bomb", cause: runtime.CausePids, exitCode: 1,
			code: `import { spawn } from 'node:child_process'; for (;;) { await new Promise(r => setImmediate(r)); spawn('sleep', ['100']) }`,
		},
		{
			name: "shell fork bomb", cause: runtime.CauseTimeout, exitCode: 137, stdout: "bomb\n",
			code: `import { spawn } from 'node:child_process'; spawn('sh', ['-c', 'f() { f | f & }; f; echo bomb; sleep 100'], { stdio: ['ignore', 'inherit', 'ignore'] }); setInterval(() => {}, 1000)`,
		},
		{name: "endless output", code: `const b = Buffer.alloc(65536, 'x'); import fs from 'node:fs'; for (;;) fs.writeSync(1, b)`, cause: runtime.CauseTimeout, exitCode: 137, stdout: strings.Repeat("x", 1<<20)},
		{
			name: "endless output, to be ended", code: `import fs from 'node:fs'; const b = Buffer.alloc(65536, 'x'); for (;;) fs.writeSync(2, b)`,
			opts: runtime.RunOptions{OnOutputLimit: runtime.KillOnOutput}, cause: runtime.CauseOutput, exitCode: 137,
		},
		{
			name: "full disk", exitCode: 0, stdout: "ENOSPC\n",
			code: `import fs from 'node:fs'; const b = Buffer.alloc(1 << 20, 1);
				try { for (let i = 0; ; i++) fs.writeFileSync('big' + i, b) } catch (e) { console.log(e.code) }
				for (const f of fs.readdirSync('.')) fs.rmSync(f)`,
		},
		{
			name: "full inodes, left full", exitCode: 0, stdout: "ENOSPC\n",
			code: `import fs from 'node:fs'; try { for (let i = 0; i < 1e6; i++) fs.writeFileSync('f' + i, '') } catch (e) { console.log(e.code) }`,
		},
		{
			name: "100,000 open files", exitCode: 0, stdout: "EMFILE\n",
			code: `import fs from 'node:fs'; try { for (let i = 0; i < 1e5; i++) fs.openSync('/etc/passwd') } catch (e) { console.log(e.code) }`,
		},
		{name: "closed stdout", code: `import fs from 'node:fs'; fs.closeSync(1); try { fs.writeSync(1, 'x') } catch (e) { __return(e.code) }`, exitCode: 0},
		{name: "SIGKILL to itself", code: `process.kill(process.pid, 'SIGKILL')`, cause: runtime.CauseSignal, exitCode: 137},
		{name: "SIGKILL to everything", code: `try { process.kill(-1, 'SIGKILL') } catch {}; try { process.kill(1, 'SIGKILL') } catch (e) { console.log(e.code) }`, exitCode: 0, stdout: "EPERM\n"},
		{
			name: "SIGSTOP to everything", cause: runtime.CauseTimeout, exitCode: 137, stdout: "stop\n",
			code: `import { spawn } from 'node:child_process'; import { readdirSync } from 'node:fs';
				spawn('sleep', ['100']);
				for (const pid of readdirSync('/proc').filter(Number).filter(p => p != process.pid)) try { process.kill(pid, 'SIGSTOP') } catch {}
				console.log('stop'); process.kill(process.pid, 'SIGSTOP')`,
		},
		{name: "abort", code: `process.abort()`, cause: runtime.CauseSignal, exitCode: 134},
		{name: "value of 100 MB", code: `__return('x'.repeat(1e8))`, exitCode: 1},
		{name: "garbage on the value pipe", code: `import fs from 'node:fs'; __return(1); fs.writeSync(3, Buffer.alloc(1000, 0xff)); try { for (let i = 0; i < 1e5; i++) fs.writeSync(3, Buffer.alloc(1000, 0xff)) } catch (e) { console.log(e.code) }`, exitCode: 0, stdout: "EPIPE\n"},
		{name: "closed control descriptors", code: `import fs from 'node:fs'; fs.closeSync(3); fs.closeSync(4); try { __return(1) } catch (e) { console.log(e.code) }`, exitCode: 0, stdout: "EBADF\n"},
		{name: "what it starts outlives it", code: `import { spawn } from 'node:child_process'; spawn('sleep', ['100'], { detached: true, stdio: 'inherit' }).unref()`, exitCode: 0},
		{name: "zombies", code: `import { execSync } from 'node:child_process'; execSync('for i in 1 2 3 4 5 6 7 8; do (sleep 0.01 &) ; done')`, exitCode: 0},
		{name: "enlarged pipe", code: `import { spawnSync } from 'node:child_process'; import fs from 'node:fs'; fs.writeSync(1, 'y'.repeat(65536))`, exitCode: 0, stdout: strings.Repeat("y", 65536)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !limitsFiles && strings.Contains(tc.name, "inodes") {
				return
			}
			tc.opts.Timeout = time.Minute // enough for a busy machine
			if tc.cause == runtime.CauseTimeout {
				tc.opts.Timeout = 500 * time.Millisecond
			}
			res, took := runInTime(t, rt, tc.code, &tc.opts, func(res *runtime.Result) bool { return string(res.Stdout) == tc.stdout })
			if res.Cause != tc.cause || res.ExitCode != tc.exitCode {
				t.Errorf("cause %q, exit code %d, signal %s, stderr %.500s", res.Cause, res.ExitCode, res.Signal, res.Stderr)
			}
			if string(res.Stdout) != tc.stdout {
				t.Errorf("stdout %.100q", res.Stdout)
			}
			if over := took - tc.opts.Timeout; over > 20*time.Second { // generous, because the machine is shared
				t.Errorf("ended %v after its limit", over)
			}
			next := harness.Run(t, rt, `__return(6 * 7)`, runtime.RunOptions{})
			if string(next.Value) != "42" || next.ExitCode != 0 || next.Cause != "" {
				t.Errorf("the next run: value %s, exit code %d, cause %q, stderr %s", next.Value, next.ExitCode, next.Cause, next.Stderr)
			}
		})
	}
}

// runInTime runs a program, also with longer time limits while a limit has left it too little time,
// as on a busy machine.
func runInTime(t *testing.T, rt *runtime.NodeRuntime, code string, o *runtime.RunOptions, complete func(*runtime.Result) bool) (res *runtime.Result, took time.Duration) {
	t.Helper()
	for {
		began := time.Now()
		res = harness.Run(t, rt, code, *o)
		took = time.Since(began)
		if res.Cause != runtime.CauseTimeout || complete(res) || o.Timeout >= time.Minute {
			return res, took
		}
		o.Timeout *= 4
	}
}

// A program that exceeds its output limit is reported so, even if it ends before it can be
// killed.
func TestOutputJustOverItsLimit(t *testing.T) {
	const limit = 4096
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Output: limit}})
	for more, cause := range []runtime.Cause{runtime.CauseNone, runtime.CauseOutput} {
		for range 10 {
			res, err := rt.Command(t.Context(), "printf", []string{"%0*d", fmt.Sprint(limit + more), "0"}, runtime.RunOptions{OnOutputLimit: runtime.KillOnOutput})
			if err != nil || res.Cause != cause || len(res.Stdout) != limit || res.Truncated.Stdout != (more > 0) {
				t.Errorf("%d bytes too many: cause %q, %d bytes, %+v, %v", more, res.Cause, len(res.Stdout), res.Truncated, err)
			}
		}
	}
}

func TestCPUTime(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{CPUTime: time.Second}})
	res := harness.Run(t, rt, `import { spawnSync } from 'node:child_process'; spawnSync(process.execPath, ['-e', 'for (;;);'])`, runtime.RunOptions{})
	if res.Cause != runtime.CauseCPU || res.Usage.CPU < time.Second || res.Usage.CPU > 5*time.Second {
		t.Errorf("cause %q after %v", res.Cause, res.Usage.CPU)
	}
	if res = harness.Run(t, rt, `await new Promise(r => setTimeout(r, 1000))`, runtime.RunOptions{}); res.Cause != "" {
		t.Errorf("idle: cause %q after %v", res.Cause, res.Usage.CPU)
	}
}

func TestCPUQuota(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{CPUs: 0.25}})
	res := harness.Run(t, rt, `const t = Date.now(); while (Date.now() - t < 1500);`, runtime.RunOptions{})
	if share := float64(res.Usage.CPU) / float64(res.Duration); share > 0.4 {
		t.Errorf("used %.2f of a processor", share)
	}
}

func TestCancel(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := rt.Run(ctx, `console.log('up'); for (;;);`, runtime.RunOptions{OnStdout: func([]byte) { cancel() }})
	if !errors.Is(err, context.Canceled) || res.Cause != runtime.CauseCanceled || string(res.Stdout) != "up\n" {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err = rt.Run(ctx, `1`, runtime.RunOptions{}); !errors.Is(err, context.Canceled) || res.Cause != runtime.CauseCanceled {
		t.Errorf("with a dead context: %+v, %v", res, err)
	}
}

func TestCloseEndsRuns(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	up := make(chan struct{})
	ended := make(chan *runtime.Result)
	go func() {
		res, err := rt.Run(t.Context(), `console.log('up'); for (;;);`, runtime.RunOptions{OnStdout: func([]byte) { close(up) }})
		if !errors.Is(err, runtime.ErrClosed) {
			t.Error(err)
		}
		ended <- res
	}()
	<-up
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if res := <-ended; res == nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("%+v", res)
	}
	if _, err := rt.Run(t.Context(), `1`, runtime.RunOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("a closed runtime: %v", err)
	}
}

// A blocked Read of the caller's standard input delays nothing.
func TestStdinThatNeverEnds(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	release := make(chan struct{})
	defer close(release)
	began := time.Now()
	res := harness.Run(t, rt, `process.exit(0)`, runtime.RunOptions{Stdin: blocked{release}})
	if res.ExitCode != 0 || time.Since(began) > 15*time.Second {
		t.Errorf("exit code %d after %v", res.ExitCode, time.Since(began))
	}
}

type blocked struct{ release chan struct{} }

func (b blocked) Read([]byte) (int, error) {
	<-b.release
	return 0, errors.New("released")
}
