package permissions

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

const (
	node    = "/usr/local/bin/node"
	busybox = "/usr/bin/busybox"
	shell   = "/usr/bin/dash" // /bin/sh
)

// listing allows these programs to be started.
func listing(paths ...string) policy.Permissions {
	return policy.Permissions{ChildProcess: allowing(nil, paths...)}
}

// programWays starts programs from Node in many ways.
const programWays = `
	import { spawnSync } from 'node:child_process'; import fs from 'node:fs';
	const start = (file, args = ['x'], o = {}) => () => {
		const r = spawnSync(file, args, { encoding: 'utf8', argv0: 'echo', ...o });
		if (r.error) throw r.error;
		return r.status ? 'status ' + r.status : 'ok';
	};
	const loader = fs.existsSync('/lib64/ld-linux-x86-64.so.2') ? '/lib64/ld-linux-x86-64.so.2' : '/lib/ld-linux-aarch64.so.1';
	await attempt('node', start('/usr/local/bin/node', ['-p', '1'], { argv0: 'node' }));
	await attempt('busybox', start('/usr/bin/busybox'));
	await attempt('applet', start('/usr/bin/echo'));
	await attempt('applet by the shell', start('/bin/sh', ['-c', 'cat /etc/passwd >/dev/null'], { argv0: 'sh' }));
	await attempt('loader of a listed one', start(loader, ['/usr/bin/busybox', 'echo', 'x']));
	for (const dir of ['/tmp', '/workspace', '/home/node', '/dev/shm']) {
		fs.copyFileSync('/usr/bin/busybox', dir + '/echo'); fs.chmodSync(dir + '/echo', 0o755);
		fs.writeFileSync(dir + '/script', '#!/usr/bin/busybox sh\necho x\n', { mode: 0o755 });
		await attempt('copy in ' + dir, start(dir + '/echo'));
		await attempt('loader of ' + dir, start(loader, [dir + '/echo', 'x']));
		await attempt('script in ' + dir, start(dir + '/script'));
	}
	fs.symlinkSync('/tmp/echo', '/tmp/link'); await attempt('symbolic link', start('/tmp/link'));
	fs.linkSync('/tmp/echo', '/tmp/hard'); await attempt('hard link', start('/tmp/hard'));
	await attempt('from the shell', start('/bin/sh', ['-c', '/tmp/echo x'], { argv0: 'sh' }));
	await attempt('root', start('/proc/self/root/tmp/echo'));
	await attempt('dots', start('/usr/bin/../../tmp/echo'));
	await attempt('descriptor', start('/proc/self/fd/3', ['x'], { stdio: [0, 'pipe', 'pipe', fs.openSync('/tmp/echo')] }));
	await attempt('npm', start('/usr/local/lib/node_modules/npm/bin/npm-cli.js', ['--version']));
	await attempt('self', start('/proc/self/exe', ['-p', '1'], { argv0: 'node' }));`

// Listed programs start, and others cannot be started in any way: a copy is another
// program.
func TestPermissionProgramList(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, listing(node))
	listed := attempts(t, harness.CreatePermitted(t, listing(node, busybox, shell)), programWays, runtime.RunOptions{})
	any := attempts(t, harness.CreatePermitted(t, policy.Permissions{}), programWays, runtime.RunOptions{})
	for _, way := range []string{"node", "busybox", "applet", "applet by the shell", "loader of a listed one"} {
		if listed[way] != "ok" {
			t.Errorf("%s: %s", way, listed[way])
		}
	}
	for way, got := range any {
		isShm := strings.HasSuffix(way, " /dev/shm") // it is noexec
		if isShm == (got == "ok") {
			t.Errorf("with any program: %s: %s: the test proves nothing", way, got)
		}
	}
	for _, way := range []string{
		"copy in /tmp", "copy in /workspace", "copy in /home/node", "copy in /dev/shm", "script in /tmp", "script in /workspace",
		"symbolic link", "hard link", "root", "dots", "descriptor", "npm",
	} {
		if listed[way] != "EACCES" {
			t.Errorf("%s: %s", way, listed[way])
		}
	}
	self := "EACCES" // the forked Node was started outside the jail
	if harness.Options(runtime.Options{}).Launcher == runtime.LauncherExec {
		self = "ok"
	}
	for way, want := range map[string]string{
		"self":           self,
		"loader of /tmp": "status 127", "loader of /workspace": "status 127", "loader of /home/node": "status 127", "loader of /dev/shm": "status 127",
		"from the shell": "status 126",
	} {
		if listed[way] != want {
			t.Errorf("%s: %s, want %s", way, listed[way], want)
		}
	}
}

// The list is of files, and does not restrict listed programs. Code in memory files
// belongs to no listed file.
func TestPermissionListedProgram(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, listing(node))
	const at = "/workspace/listed/"
	listed, any := harness.CreatePermitted(t, listing(node, shell, at+"**")), harness.CreatePermitted(t, policy.Permissions{})
	for _, rt := range []*runtime.NodeRuntime{listed, any} {
		harness.Install(t, rt, "spawn")
		harness.Install(t, rt, "spawn.node")
		harness.Run(t, rt, `import fs from 'node:fs'; fs.mkdirSync('listed', { recursive: true });
			for (const f of ['spawn', 'spawn.node']) fs.copyFileSync(f, 'listed/' + f)`, runtime.RunOptions{})
	}
	for _, tc := range []struct{ way, want, any string }{
		{"memfd", "memfd EPERM", "ran"},
		{"memfd-exec", "memfd-exec EPERM", "ran"},
		{"memfd-sealed", "memfd-sealed EACCES", "memfd-sealed EACCES"},
		{"execve", "ran", "ran"}, // /bin/sh
		{"execveat-fd", "ran", "ran"},
		{"execve-self", "thread ok", "thread ok"},
	} {
		if got := harness.Output(t, listed, runtime.RunOptions{}, at+"spawn", tc.way); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.way, got, tc.want)
		}
		if got := harness.Output(t, any, runtime.RunOptions{}, at+"spawn", tc.way); got != tc.any {
			t.Errorf("with any program: %s: %q, want %q", tc.way, got, tc.any)
		}
	}
	// Libraries are code like programs: none is loaded from a place that is not listed.
	for _, tc := range []struct {
		rt      *runtime.NodeRuntime
		library string
		loads   bool
	}{{listed, "/workspace/spawn.node", false}, {listed, at + "spawn.node", true}, {any, "/workspace/spawn.node", true}} {
		o := runtime.RunOptions{Env: map[string]string{"WAYS": "thread", "LD_PRELOAD": tc.library}}
		res, err := tc.rt.Command(t.Context(), node, []string{"-p", "1"}, o)
		if err != nil || strings.HasPrefix(string(res.Stdout), "thread ok") != tc.loads {
			t.Errorf("preload %s: %+v, %v", tc.library, res, err)
		}
		res = harness.Run(t, tc.rt, `process.dlopen({ exports: {} }, process.argv[2])`, runtime.RunOptions{Args: []string{tc.library}, Env: map[string]string{"WAYS": "thread"}})
		if strings.HasPrefix(string(res.Stdout), "thread ok") != tc.loads {
			t.Errorf("addon %s: %s%s", tc.library, res.Stdout, res.Stderr)
		}
	}
}

// The list applies to Command. Without spawn permission, Command still starts the program
// that its caller names.
func TestPermissionProgramOfCommand(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, listing(node))
	rt := harness.CreatePermitted(t, listing(node))
	for _, name := range []string{"sh", busybox, "/usr/local/bin/npm", harness.Install(t, rt, "spawn")} {
		if _, err := rt.Command(t.Context(), name, nil, runtime.RunOptions{}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := harness.Output(t, rt, runtime.RunOptions{}, "node", "-p", "6*7"); got != "42" {
		t.Errorf("got %s", got)
	}
	if _, err := rt.Command(t.Context(), "no-such", nil, runtime.RunOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if got := harness.Output(t, harness.CreatePermitted(t, noSpawn), runtime.RunOptions{}, "sh", "-c", "echo $((6*7))"); got != "42" {
		t.Errorf("without spawning: %s", got)
	}
}

func TestPermissionProgramRefused(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, listing(node))
	for name, tc := range map[string]struct {
		p        policy.Permissions
		launcher runtime.Launcher
		says     string
	}{
		"a link":            {listing(node, "/bin/sh"), runtime.LauncherZygote, "/bin is a symbolic link, and the kernel knows its target only; nearest: /usr/bin/sh"},
		"a folder as file":  {listing(node, "/usr/bin"), runtime.LauncherZygote, "it is a folder, and a path without /** is one file; nearest: /usr/bin/**"},
		"no Node to launch": {listing(busybox), runtime.LauncherExec, "/usr/local/bin/node is not among the programs that may be started"},
	} {
		o := harness.Options(runtime.Options{Permissions: tc.p})
		o.Launcher = tc.launcher
		err := harness.CreateError(t, o)
		if err == nil || !strings.Contains(err.Error(), tc.says) || errors.Is(err, runtime.ErrUnsupported) != (tc.launcher == runtime.LauncherExec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	all := policy.Scope{Default: policy.Allow, Rules: []policy.Rule{{Mode: policy.Deny, Patterns: []string{"/bin/sh"}}}}
	if err := refusal(t, policy.Permissions{ChildProcess: all}); err.Place != "childProcess.rules[0].patterns[0]" || err.Nearest == "" {
		t.Errorf("all programs but one, of which a copy is another: %v", err)
	}
	if !harness.Needs(t, runtime.FeatureZygote) {
		return
	}
	o := harness.Forking(runtime.Options{Permissions: listing(busybox)})
	rt := harness.CreateExact(t, o)
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("a forked Node needs no listing: %+v", res)
	}
	if _, err := rt.Run(t.Context(), `1`, runtime.RunOptions{Env: map[string]string{"NODE_OPTIONS": "--no-warnings"}}); !errors.Is(err, runtime.ErrUnsupported) || !strings.Contains(err.Error(), node) || !strings.Contains(err.Error(), "NODE_OPTIONS") {
		t.Errorf("a Node of its own does: %v", err)
	}
}

// A program that is not listed cannot be started from a mount or a snapshot either: a
// listed program's loader maps nothing there.
func TestProgramListOverMounts(t *testing.T) {
	dir := harness.HostTree(t, map[string]string{"f": ""})
	first := harness.Create(t, runtime.Options{})
	harness.Run(t, first, `import fs from 'node:fs'; fs.writeFileSync('f', '')`, runtime.RunOptions{})
	const script = `
		import fs from 'node:fs'; import { spawnSync } from 'node:child_process';
		const loader = ['/lib64/ld-linux-x86-64.so.2', '/lib/ld-linux-aarch64.so.1'].find(f => fs.existsSync(f)), libc = '/usr/lib/' + fs.readdirSync('/usr/lib').find(d => d.endsWith('-linux-gnu')) + '/libc.so.6';
		for (const d of ['/workspace', '/data']) { const f = d + '/program'; fs.copyFileSync(libc, f); fs.chmodSync(f, 0o755); console.log(spawnSync(loader, [f]).status === 0 ? 'ran' : 'refused') }`
	for name, o := range map[string]runtime.Options{
		"mounts":   {Mounts: []runtime.Mount{{Source: dir, Target: "/workspace", Access: runtime.CopyOnWrite}, {Source: dir, Target: "/data", Access: runtime.ReadWrite}}},
		"snapshot": {Snapshot: harness.TakeSnapshot(t, first, runtime.SnapshotOptions{}).ID, Mounts: []runtime.Mount{{Source: dir, Target: "/data", Access: runtime.CopyOnWrite}}},
	} {
		for p, want := range map[*policy.Permissions]string{{}: "ran\nran\n", new(listing(node)): "refused\nrefused\n"} {
			if !p.IsZero() && !harness.Needs(t, runtime.FeatureLandlock) {
				continue
			}
			o.Permissions = p.Over(policy.Default())
			if res := harness.Run(t, harness.Create(t, o), script, runtime.RunOptions{}); string(res.Stdout) != want {
				t.Errorf("%s: got %q %q, want %q", name, res.Stdout, res.Stderr, want)
			}
		}
	}
}
