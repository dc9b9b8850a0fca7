package permissions

import (
	"errors"
	"io/fs"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// Ways of testdata/spawn.c: to have another process, and to become another
// program.
var (
	forks = []string{
		"fork", "vfork", "clone", "clone-vm", "clone-vfork", "clone-parent", "clone-silent", "clone-sighand", "clone-high", "clone3", "posix_spawn",
	}
	execs = []string{"execve", "execveat", "execveat-fd", "execve-self", "memfd", "memfd-exec"}
)

var noSpawn = policy.Permissions{ChildProcess: denied}

// wantNoSpawns checks the results of the ways without childProcess.
func wantNoSpawns(t *testing.T, got map[string]string) {
	t.Helper()
	for _, way := range slices.Concat(forks, execs) {
		want := "EPERM"
		if way == "clone3" {
			want = "ENOSYS" // makes the C library use clone
		}
		if got[way] != want {
			t.Errorf("%s: %q, want %s", way, got[way], want)
		}
	}
	if got["thread"] != "ok" {
		t.Errorf("a thread: %q", got["thread"])
	}
}

// A program that may not start others cannot do so by its own system calls. That includes a
// program that Command starts.
func TestPermissionSpawnBySystemCalls(t *testing.T) {
	none, any := harness.CreatePermitted(t, noSpawn), harness.CreatePermitted(t, policy.Permissions{})
	all := slices.Concat(forks, execs, []string{"thread"})
	spawn := harness.Install(t, none, "spawn")
	if harness.Needs(t, runtime.FeatureExec) {
		wantNoSpawns(t, answers(harness.Output(t, none, runtime.RunOptions{}, spawn, all...)))
	}

	addon := harness.Install(t, none, "spawn.node")
	const load = `try { process.dlopen({ exports: {} }, process.argv[2]) } catch {}` // its code runs, though it is no module
	res := harness.Run(t, none, load, runtime.RunOptions{Args: []string{addon}, Env: map[string]string{"WAYS": strings.Join(all, ",")}})
	wantNoSpawns(t, answers(string(res.Stdout)))

	harness.Install(t, any, "spawn")
	harness.Install(t, any, "spawn.node")
	res = harness.Run(t, any, load, runtime.RunOptions{Args: []string{addon}, Env: map[string]string{"WAYS": strings.Join(forks, ",")}})
	for who, got := range map[string]map[string]string{
		"command": answers(harness.Output(t, any, runtime.RunOptions{}, spawn, forks...)), "addon": answers(string(res.Stdout)),
	} {
		for _, way := range forks {
			want := "ok"
			switch way {
			case "clone3":
				want = "ENOSYS"
			case "clone-parent":
				want = "EPERM" // otherwise it would be the host's child
			}
			if got[way] != want {
				t.Errorf("%s with any program: %s: %q: the test proves nothing", who, way, got[way])
			}
		}
	}
	for _, way := range execs {
		if got := harness.Output(t, any, runtime.RunOptions{}, spawn, way); got != "ran" && got != "thread ok" {
			t.Errorf("with any program: %s: %q: the test proves nothing", way, got)
		}
	}
}

// Command's program is started by one execve, which the host lets the kernel run. At no
// moment does a second execve succeed. Failed attempts of the search along PATH are not
// reported as denials.
func TestPermissionSpawnAfterCommand(t *testing.T) {
	harness.Require(t, runtime.FeatureExec)
	rt := harness.CreatePermitted(t, noSpawn)
	spawn := harness.Install(t, rt, "spawn")
	first := map[string]string{"PATH": "/none:/usr/local/bin:/workspace"}
	for range 30 {
		res, err := rt.Command(t.Context(), "spawn", []string{"execve", "fork"}, runtime.RunOptions{Env: first})
		if err != nil || string(res.Stdout) != "execve EPERM\nfork EPERM\n" {
			t.Fatalf("%+v, %v", res, err)
		}
		wantSame(t, "denials", []runtime.Denial{
			seccompDenial(policy.ChildProcess, "spawn", "/bin/sh", "childProcess.default", 1), seccompDenial(policy.ChildProcess, "spawn", "", "childProcess.default", 1),
		}, res.Denials)
	}
	if _, err := rt.Command(t.Context(), spawn+"-none", nil, runtime.RunOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Every API of Node that starts a process fails, and its threads work.
func TestPermissionSpawnOfNode(t *testing.T) {
	const code = `
		import cp from 'node:child_process'; import cluster from 'node:cluster'; import { once } from 'node:events'; import { writeFileSync } from 'node:fs';
		import { Worker } from 'node:worker_threads'; import { promisify } from 'node:util'; import zlib from 'node:zlib'; import crypto from 'node:crypto';
		writeFileSync('/tmp/child.mjs', 'process.exit()');
		const ended = async (child) => { await once(child, 'exit') };
		await attempt('spawn', () => ended(cp.spawn('true')));
		await attempt('shell', () => ended(cp.spawn('true', { shell: true })));
		await attempt('detached', () => ended(cp.spawn('true', { detached: true, stdio: 'ignore' })));
		await attempt('exec', async () => { await promisify(cp.exec)('true') });
		await attempt('execFile', async () => { await promisify(cp.execFile)('/bin/true') });
		await attempt('fork', () => ended(cp.fork('/tmp/child.mjs')));
		await attempt('spawnSync', async () => { const { error } = cp.spawnSync('true'); if (error) throw error });
		await attempt('execSync', async () => { cp.execSync('true') });
		await attempt('cluster', () => { cluster.setupPrimary({ exec: '/tmp/child.mjs' }); return ended(cluster.fork()) });
		await attempt('worker', async () => { await once(new Worker('', { eval: true }), 'exit') });
		await attempt('gzip', async () => { await promisify(zlib.gzip)('x') });
		await attempt('pbkdf2', async () => { await promisify(crypto.pbkdf2)('a', 'b', 1000, 20, 'sha256') });`
	ways := []string{"spawn", "shell", "detached", "exec", "execFile", "fork", "spawnSync", "execSync", "cluster"}
	got, free := attempts(t, harness.CreatePermitted(t, noSpawn), code, runtime.RunOptions{}), attempts(t, harness.CreatePermitted(t, policy.Permissions{}), code, runtime.RunOptions{})
	for _, way := range ways {
		if got[way] != "EPERM" || free[way] != "ok" {
			t.Errorf("%s: %q, with any program %q", way, got[way], free[way])
		}
	}
	for _, way := range []string{"worker", "gzip", "pbkdf2"} {
		if got[way] != "ok" {
			t.Errorf("%s, which works only for threads: %q", way, got[way])
		}
	}
	const become = `process.execve('/bin/sh', ['sh', '-c', 'echo ran'], {})`
	if res := harness.Run(t, harness.CreatePermitted(t, policy.Permissions{}), become, runtime.RunOptions{}); string(res.Stdout) != "ran\n" {
		t.Errorf("process.execve with any program: %s%s: the test proves nothing", res.Stdout, res.Stderr)
	}
	if res := harness.Run(t, harness.CreatePermitted(t, noSpawn), become, runtime.RunOptions{}); res.ExitCode == 0 || len(res.Denials) != harness.Reported(1) {
		t.Errorf("process.execve: exit code %d, %s%s, %+v", res.ExitCode, res.Stdout, res.Stderr, res.Denials)
	}
}

// A guest that makes refused calls without end slows down only itself, not the host or
// another run, although each call wakes the host.
func TestPermissionSpawnHammered(t *testing.T) {
	harness.Require(t, runtime.FeatureExec)
	rt, other := harness.CreatePermitted(t, noSpawn), harness.CreatePermitted(t, noSpawn)
	spawn, slower := harness.Install(t, rt, "spawn"), false
	medianRun(t, other) // fills caches
	goruntime.GC()
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	hammer := harness.StartCommand(t, rt, spawn, "hammer", "100000000")
	for range 5 { // other work on the machine may slow down either measurement
		busy := medianRun(t, other)
		goruntime.ReadMemStats(&after)
		hammer.Stop()
		quiet := medianRun(t, other)
		t.Logf("a run takes %v, beside the hammer %v", quiet, busy)
		if slower = busy > 8*quiet+200*time.Millisecond; !slower { // generous, because the machine is shared
			break
		}
		hammer = harness.StartCommand(t, rt, spawn, "hammer", "100000000")
	}
	if slower {
		t.Error("runs beside the hammer take much longer")
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 16<<20 {
		t.Errorf("the host's memory grew by %d bytes", grown)
	}
	hammer.Stop()

	var res *runtime.Result
	harness.InTime(time.Second, func(limit time.Duration) bool {
		began := time.Now()
		var err error
		res, err = rt.Command(t.Context(), spawn, []string{"hammer", "100000000"}, runtime.RunOptions{Timeout: limit})
		if err != nil || res.Cause != runtime.CauseTimeout || time.Since(began) > limit+15*time.Second {
			t.Errorf("after %v: %+v, %v", time.Since(began), res, err)
		}
		return len(res.Denials) == 1 && res.Denials[0].Count >= 1000
	})
	if n := len(res.Denials); n != 1 || res.Denials[0].Count < 1000 {
		t.Errorf("denials %+v", res.Denials)
	}
	res = harness.Run(t, rt, `__return(1)`, runtime.RunOptions{})
	if string(res.Value) != "1" {
		t.Errorf("the next run: %+v", res)
	}
	held := harness.StartCommand(t, rt, spawn, "hammer", "100000000")
	if err := rt.Close(); err != nil {
		t.Errorf("closing beside the hammer: %v", err)
	}
	held.Stop()
}

// medianRun is how long a warm run takes.
func medianRun(t *testing.T, rt *runtime.NodeRuntime) time.Duration {
	t.Helper()
	var took []time.Duration
	for range 11 {
		took = append(took, harness.Run(t, rt, ``, runtime.RunOptions{}).Duration)
	}
	slices.Sort(took)
	return took[len(took)/2]
}
