package permissions

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// publicOnly are permissions of a run for all of /workspace/public, and for the programs in
// /workspace/bin.
func publicOnly(t testing.TB) policy.Permissions {
	t.Helper()
	return fsRules(t, "deny", `{"mode":"allow","operations":["read","execute"],"paths":["/workspace/bin/**","/usr/bin/**"]},
		{"mode":"allow","operations":["read","write","readdir","create_dir","rm","rename","symlink","truncate","execute"],"paths":["/workspace/public/**"]}`)
}

// withPrivate creates a runtime with programs and with a private folder that runs may not
// read.
func withPrivate(t *testing.T, programs ...string) *runtime.NodeRuntime {
	t.Helper()
	rt := harness.Create(t, runtime.Options{})
	for _, name := range programs {
		put(t, rt, "/workspace/bin/"+name, static(t, name))
	}
	put(t, rt, "/workspace/private/f", []byte("the secret"))
	put(t, rt, "/workspace/private/victim", nil)
	put(t, rt, "/workspace/public/f", []byte("open"))
	return rt
}

// Opening a path that others change at the same time opens an allowed file or fails.
func TestPermissionFSRaces(t *testing.T) {
	tier.Soak(t)
	// On a busy machine the threads may not run at the same time: once is enough.
	const tries = 20
	race := func(t *testing.T, rt *runtime.NodeRuntime, o runtime.RunOptions, secret string) (open, wrong int) {
		t.Helper()
		neither := 0
		for i := 0; i < tries && (open == 0 || neither == 0); i++ {
			harness.Output(t, rt, runtime.RunOptions{}, "rm", "-rf", "/workspace/public/race")
			text := harness.Output(t, rt, o, "/workspace/bin/race", "/workspace/public/race", secret, "400")
			var had [3]int
			if _, err := fmt.Sscan(text, &had[0], &had[1], &had[2]); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			open, wrong, neither = open+had[0], wrong+had[1], neither+had[2]
		}
		if open == 0 || neither == 0 {
			t.Errorf("opened %d, and %d not: this test proves nothing", open, neither)
		}
		return open, wrong
	}
	rt := withPrivate(t, "race")
	won := 0
	for i := 0; i < tries && won == 0; i++ {
		_, won = race(t, rt, runtime.RunOptions{}, "/workspace/private")
	}
	if won == 0 {
		t.Error("the race is never won where all is allowed: this test proves nothing")
	}
	if _, secret := race(t, rt, runtime.RunOptions{Permissions: publicOnly(t)}, "/workspace/private"); secret > 0 {
		t.Errorf("a run opened the secret %d times", secret)
	}
	hidden := harness.Create(t, runtime.Options{Permissions: fsRules(t, "allow", `{"mode":"deny","paths":["/etc/passwd","/workspace/private/**"]}`)})
	put(t, hidden, "/workspace/bin/race", static(t, "race"))
	put(t, hidden, "/workspace/public/f", []byte("open"))
	if _, secret := race(t, hidden, runtime.RunOptions{}, "/workspace/private"); secret > 0 {
		t.Errorf("the secret was opened %d times", secret)
	}
}

// A run with fewer permissions cannot use one with more to reach files, neither through its
// /proc entries nor through its links.
func TestPermissionFSOtherRuns(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, publicOnly(t))
	rt := withPrivate(t)
	wide := harness.StartCommand(t, rt, "sh", "-c", `cd /workspace/private; exec 9<f; echo $$; ln -s ../private /workspace/public/to;
		ln f /workspace/public/hard; sleep 60; true`)
	const try = `import fs from 'node:fs';
		const pid = process.argv[2], codes = {};
		const paths = { root: 'root/workspace/private/f', cwd: 'cwd/f', fd: 'fd/9', task: 'task/' + pid + '/root/workspace/private/f', environ: 'environ', maps: 'maps' };
		for (const [name, path] of Object.entries(paths)) try { fs.readFileSync('/proc/' + pid + '/' + path); codes[name] = '' } catch (e) { codes[name] = e.code }
		for (const path of ['to/f', 'hard']) for (;;) try { codes[path] = fs.readFileSync('/workspace/public/' + path, 'utf8'); break } catch (e) {
			if (e.code !== 'ENOENT') { codes[path] = e.code; break } // the link does not exist yet
		}
		__return(codes)`
	o := runtime.RunOptions{Args: []string{wide.First}}
	free := map[string]string{"root": "", "cwd": "", "fd": "", "task": "", "environ": "", "maps": "", "to/f": "the secret", "hard": "the secret"}
	if diff := gocmp.Diff(free, value[map[string]string](t, rt, try, o)); diff != "" {
		t.Errorf("a run that may do the same (-want +got): this test proves nothing\n%s", diff)
	}
	o.Permissions = publicOnly(t)
	want := map[string]string{}
	for name := range free {
		want[name] = "EACCES"
	}
	// A hard link has the permissions of its own place: see package policy.
	want["hard"] = "the secret"
	if diff := gocmp.Diff(want, value[map[string]string](t, rt, try, o)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// passed are the attempts of fds.c that succeed with descriptors of /workspace/private from
// another run: the access they were opened with, and nothing that needs opening again.
var passed = strings.Split("read,map,write,truncate,list,go to a folder", ",")

// A descriptor from a run with more permissions still allows the access it was opened with. It
// gives no further access, neither through /proc/self/fd nor to the content of a folder.
func TestPermissionFSPassedDescriptors(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, publicOnly(t))
	rt := withPrivate(t, "fds")
	const program, file, folder = "/workspace/bin/fds", "/workspace/private/f", "/workspace/private"
	attempts := func(o runtime.RunOptions, args ...string) map[string]string {
		t.Helper()
		put(t, rt, folder+"/victim", nil)
		harness.Output(t, rt, runtime.RunOptions{}, "rm", "-f", "/tmp/linked", "/tmp/linked2", folder+"/made")
		codes := map[string]string{}
		for line := range strings.Lines(harness.Output(t, rt, o, program, args...)) {
			name, code, _ := strings.Cut(strings.TrimSpace(line), ": ")
			codes[name] = code
		}
		return codes
	}
	const eacces, ebadf, enoent = "13", "9", "2"
	// Descriptors that were opened for something else never work.
	never := map[string]string{"write what is for reading": ebadf, "read what is for writing": ebadf, "read a path": ebadf}
	free := attempts(runtime.RunOptions{}, "open", file, folder, "f")
	if len(free) < 20 {
		t.Fatalf("only %d attempts: %v", len(free), free)
	}
	for name, code := range free {
		if code != cmp.Or(never[name], "0") {
			t.Errorf("where all is allowed, %s: %s: this test proves nothing", name, code)
		}
	}
	giver := harness.StartCommand(t, rt, program, "give", "/workspace/public/socket", file, folder)
	if giver.First != "up" {
		t.Fatal(giver.First)
	}
	want := map[string]string{}
	for name, code := range free {
		want[name] = eacces
		if never[name] != "" {
			want[name] = code
		}
	}
	want["link a descriptor"] = enoent // only the process that opened it may
	for _, name := range passed {
		want[name] = "0"
	}
	if diff := gocmp.Diff(want, attempts(runtime.RunOptions{Permissions: publicOnly(t)}, "take", "/workspace/public/socket", "f")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Permissions apply to all threads and descendants of a run, whatever session or group they
// leave.
func TestPermissionFSDescendants(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, publicOnly(t))
	rt := withPrivate(t)
	const try = `import fs from 'node:fs'; import { execFileSync } from 'node:child_process'; import { Worker } from 'node:worker_threads';
		const path = '/workspace/private/f', codes = {};
		const t = (name, f) => { try { codes[name] = String(f()) } catch (e) { codes[name] = e.code ?? (/denied/.test(e.stderr) ? 'EACCES' : String(e.stderr)) } };
		const nested = depth => 'const { Worker, parentPort } = require("worker_threads"); ' + (depth
			? 'new Worker(' + JSON.stringify(nested(depth - 1)) + ', { eval: true }).on("message", m => parentPort.postMessage(m))'
			: 'try { parentPort.postMessage(require("fs").readFileSync("' + path + '", "utf8")) } catch (e) { parentPort.postMessage(e.code) }');
		for (const depth of [0, 2]) codes['worker ' + depth] = await new Promise((ok, no) => new Worker(nested(depth), { eval: true }).on('message', ok).on('error', no));
		codes.pool = String(await fs.promises.readFile(path).catch(e => e.code));
		const pipe = { stdio: 'pipe' };
		t('child', () => execFileSync('cat', [path], pipe));
		t('shell', () => execFileSync('sh', ['-c', 'sh -c "cat ' + path + '"'], pipe));
		t('detached', () => execFileSync('setsid', ['cat', path], pipe));
		t('node', () => execFileSync('node', ['-e', 'process.stdout.write(require("fs").readFileSync("' + path + '"))'], pipe));
		__return(codes)`
	names := strings.Split("worker 0,worker 2,pool,child,shell,detached,node", ",")
	for _, tc := range []struct {
		o    runtime.RunOptions
		want string
	}{{runtime.RunOptions{}, "the secret"}, {runtime.RunOptions{Permissions: publicOnly(t)}, "EACCES"}} {
		want := map[string]string{}
		for _, name := range names {
			want[name] = tc.want
		}
		if diff := gocmp.Diff(want, value[map[string]string](t, rt, try, tc.o)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
