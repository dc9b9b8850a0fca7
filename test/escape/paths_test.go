package escape

import (
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// startIn runs a program that fails the test if it finds a way out of the jail from its
// working directory. The start itself may fail.
func startIn(t *testing.T, rt *runtime.NodeRuntime, climb, cwd string) {
	t.Helper()
	res, err := rt.Command(t.Context(), climb, nil, runtime.RunOptions{Cwd: cwd})
	if err != nil {
		return // a failed start is contained, too
	}
	if strings.Contains(string(res.Stdout), "outside") || strings.Contains(string(res.Stdout), "fd ") {
		t.Errorf("working directory %s: %s", cwd, res.Stdout)
	}
}

// CVE-2024-21626: the working directory is a path through a descriptor that the program
// which enters the jail has open. Package jail's TestEscapeLeakedDescriptor shows that the
// climb succeeds if such a descriptor is open.
func TestEscapeWorkingDirectory(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	climb := harness.Install(t, rt, "climb")
	for fd := range 33 {
		startIn(t, rt, climb, fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	for _, cwd := range []string{
		"/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/proc/self/cwd", "/proc/thread-self/root", "/proc/self/task", "/proc/self/map_files",
		"/proc/self/exe", "/proc/1/fd", "/dev/fd", "/dev/shm", "/dev/null", "/", "/nosuch",
	} {
		startIn(t, rt, climb, cwd)
	}
	for cwd, want := range map[string]string{"/": "/", "/dev/shm": "/dev/shm"} {
		if got := harness.Output(t, rt, runtime.RunOptions{Cwd: cwd}, "pwd"); got != want {
			t.Errorf("in %s: %s", cwd, got)
		}
	}
}

// The guest replaces the folder where later runs start with symbolic links.
func TestEscapeSymlinks(t *testing.T) {
	const cwd = "/home/node/app"
	rt := harness.Create(t, runtime.Options{Cwd: cwd})
	climb := harness.Install(t, rt, "climb")
	for _, target := range []string{
		"/proc/1/root", "/proc/1/cwd", "/proc/self/root/proc/1/root", "/proc/self/fd/3", "/proc/self/fd/7", "/proc/thread-self/fd/5",
		"/proc/self/cwd", "/etc", "/", "../../../../../../..", cwd, "/dev/null", "/run/gaol/stage", "/var/lib/gaol",
	} {
		res := harness.Run(t, rt, `import fs from 'node:fs'; const [, , path, target] = process.argv;
			try { fs.unlinkSync(path) } catch { fs.rmSync(path, { recursive: true, force: true }) } // in gVisor, rmSync follows links
			fs.symlinkSync(target, path)`, runtime.RunOptions{Args: []string{cwd, target}, Cwd: "/tmp"})
		if res.ExitCode != 0 {
			t.Fatalf("the guest can't replace its own folder: %s: the test proves nothing", res.Stderr)
		}
		startIn(t, rt, climb, "")
		if got := harness.Output(t, rt, runtime.RunOptions{Cwd: "/tmp"}, "pwd"); got != "/tmp" {
			t.Errorf("after %s, elsewhere: %s", target, got)
		}
	}
}

// The guest cannot replace anything that the host uses to start a run. In CVE-2019-19921
// and CVE-2025-52881, guests redirected what the program that enters the jail writes to
// /proc and /sys.
func TestEscapeReplacedFolders(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res := harness.Run(t, rt, `import fs from 'node:fs';
		const done = [], own = ['/workspace', '/home/node'];
		const attempt = (what, f) => { try { f(); done.push(what) } catch {} };
		for (const p of ['/workspace', '/tmp', '/home/node', '/home', '/proc', '/dev', '/dev/shm', '/dev/pts', '/dev/null', '/etc', '/usr', '/usr/libexec', '/usr/libexec/gaol',
			'/usr/libexec/gaol/enter', '/usr/libexec/gaol/catatonit', '/usr/libexec/gaol/prelude.cjs', '/usr/local/bin/node', '/bin', '/lib', '/lib64', '/run', '/root', '/sbin', '/opt', '/var', '/etc/passwd']) {
			attempt('rename ' + p, () => fs.renameSync(p, '/tmp/gone'));
			attempt('rename beside ' + p, () => fs.renameSync(p, p + '-'));
			attempt('rmdir ' + p, () => fs.rmdirSync(p));
			attempt('unlink ' + p, () => fs.unlinkSync(p));
			attempt('link over ' + p, () => { fs.symlinkSync('/tmp', '/tmp/link'); fs.renameSync('/tmp/link', p) });
			if (!own.includes(p)) attempt('chmod ' + p, () => fs.chmodSync(p, 0o777));
			attempt('chown ' + p, () => fs.chownSync(p, 1001, 1001));
			if (![...own, '/tmp', '/dev/shm'].includes(p)) attempt('make in ' + p, () => fs.writeFileSync(p + '/x', ''));
			fs.rmSync('/tmp/link', { force: true });
		}
		for (const p of ['/proc/self/attr/exec', '/proc/self/attr/current', '/proc/self/attr/apparmor/exec', '/proc/thread-self/attr/exec', '/proc/sys/kernel/core_pattern',
			'/proc/sys/kernel/modprobe', '/proc/sys/kernel/hostname', '/proc/sys/fs/binfmt_misc/register', '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches',
			'/proc/sys/net/ipv4/ip_forward', '/proc/irq/default_smp_affinity', '/proc/self/uid_map', '/proc/self/gid_map', '/proc/self/setgroups',
			'/proc/self/timens_offsets', '/proc/self/projid_map', '/proc/mtrr', '/proc/1/oom_score_adj', '/proc/1/comm', '/proc/1/clear_refs', '/proc/1/coredump_filter', '/proc/pressure/memory'])
			attempt('write ' + p, () => { fs.writeFileSync(p, '1'); if (fs.statSync(p).rdev === fs.statSync('/dev/null').rdev) throw 'masked' });
		attempt('lower oom_score_adj', () => fs.writeFileSync('/proc/self/oom_score_adj', '-1'));
		attempt('device', () => fs.openSync('/dev/mem', 'r'));
		__return(done)`, runtime.RunOptions{})
	if string(res.Value) != "[]" {
		t.Errorf("succeeded: %s %s", res.Value, res.Stderr)
	}
	if next := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(next.Value) != "1" {
		t.Errorf("the next run: %s", next.Stderr)
	}
}
