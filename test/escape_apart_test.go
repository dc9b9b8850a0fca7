package test

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// What one sandbox takes all that it gets of, another still gets. The kernel
// counts these by user, or by the creator of a user namespace.
func TestEscapeUserWideLimits(t *testing.T) {
	a, b := create(t, runtime.Options{}), create(t, runtime.Options{})
	hoard := install(t, a, "hoard")
	install(t, b, "hoard")
	for _, kind := range []string{"inotify", "pipe", "epoll", "locked", "pending", "timer", "terminal", "task"} {
		t.Run(kind, func(t *testing.T) {
			taken := inBackground(t, a, hoard, kind, "100000", "60")
			if count, reason, _ := strings.Cut(taken.first, " "); count == "0" || reason == "0" {
				t.Errorf("took %s: %s: the test proves nothing", count, reason)
			}
			if got := output(t, b, runtime.RunOptions{}, hoard, kind, "1", "0"); !strings.HasPrefix(got, "1 ") {
				t.Errorf("after one sandbox took %s, another gets %s", taken.first, got)
			}
			if res := run(t, b, `process.stdout.write('fine')`, runtime.RunOptions{}); string(res.Stdout) != "fine" {
				t.Errorf("the other sandbox can't run: %+v", res)
			}
			if kind == "inotify" && !hostHasInotify() {
				t.Error("root on the host can't watch files any more")
			}
		})
	}
}

// The buffers of sockets are the kernel's memory, and a run's as well.
func TestEscapeMemoryInSockets(t *testing.T) {
	rt := create(t, runtime.Options{Limits: runtime.Limits{Memory: 64 << 20}})
	hoard := install(t, rt, "hoard")
	before := socketPages(t)
	taken := inBackground(t, rt, hoard, "connection", "60", "60")
	used := (socketPages(t) - before) * int64(os.Getpagesize())
	t.Logf("connections: %s, %d MiB", taken.first, used>>20)
	if used > 2*64<<20 {
		t.Errorf("a run of 64 MiB holds %d MiB in sockets", used>>20)
	}
}

// CVE-2020-15257: abstract sockets have no file, and the network namespace is all
// that keeps them apart.
func TestEscapeAbstractSockets(t *testing.T) {
	a, b := create(t, runtime.Options{}), create(t, runtime.Options{})
	inBackground(t, a, "node", "-e", `require('net').createServer(s => s.end('hi')).listen({ path: '\0gaol-escape' }, () => console.log('up'))`)
	const connect = `import net from 'node:net';
		net.connect({ path: '\0gaol-escape' }).on('error', e => __return(e.code)).on('data', d => __return(String(d)))`
	if res := run(t, a, connect, runtime.RunOptions{}); string(res.Value) != `"hi"` {
		t.Errorf("in its own sandbox: %s %s: the test proves nothing", res.Value, res.Stderr)
	}
	if res := run(t, b, connect, runtime.RunOptions{}); string(res.Value) != `"ECONNREFUSED"` {
		t.Errorf("from another sandbox: %s %s", res.Value, res.Stderr)
	}
}

// Files of one sandbox, in memory or not, are not another's. That locks are not
// is package jail's TestJailsAreApart.
func TestEscapeSharedFiles(t *testing.T) {
	a, b := create(t, runtime.Options{}), create(t, runtime.Options{})
	const folders = "/dev/shm /tmp /workspace /home/node"
	output(t, a, runtime.RunOptions{}, "sh", "-c", "for d in "+folders+"; do echo x >$d/mark || exit 1; done")
	const marks = "for d in " + folders + "; do cat $d/mark 2>/dev/null; done; true"
	if got := output(t, a, runtime.RunOptions{}, "sh", "-c", marks); got != "x\nx\nx\nx" {
		t.Errorf("in the same sandbox: %q: the test proves nothing", got)
	}
	if got := output(t, b, runtime.RunOptions{}, "sh", "-c", marks); got != "" {
		t.Errorf("of another sandbox: %q", got)
	}
}

// Signals to every number there is reach neither another sandbox nor the host.
func TestEscapeSignals(t *testing.T) {
	a, b := create(t, runtime.Options{}), create(t, runtime.Options{})
	victim := inBackground(t, a, "sh", "-c", "echo up; sleep 2; echo alive")
	res := run(t, b, `import { existsSync } from 'node:fs';
		let hit = 0;
		for (let pid = 1; pid < 70000; pid++) {
			if (existsSync('/proc/self/task/' + pid)) continue; // a thread's number is good for kill, too
			try { process.kill(pid, 'SIGKILL'); hit++ } catch (e) { if (e.code !== 'ESRCH') console.log(pid, e.code) }
		}
		__return(hit)`, runtime.RunOptions{})
	if string(res.Value) != "0" || string(res.Stdout) != "1 EPERM\n" {
		t.Errorf("%s processes were hit, %s%s", res.Value, res.Stdout, res.Stderr)
	}
	if got := victim.next(t); got != "alive" {
		t.Errorf("the other sandbox's process: %q", got)
	}
}

// A crash leaves no core file, also after the guest asked for one.
func TestEscapeCoreDump(t *testing.T) {
	rt := create(t, runtime.Options{Limits: runtime.Limits{Disk: 256 << 20}})
	before := glob("core*", "/core*", "/var/lib/systemd/coredump/*", "/var/crash/*", os.TempDir()+"/core*")
	for _, script := range []string{"kill -SEGV $$", "ulimit -c unlimited; kill -SEGV $$", "ulimit -c 1; kill -ABRT $$", "exec node --abort-on-uncaught-exception -e 'throw 1'"} {
		res, err := rt.Command(t.Context(), "sh", []string{"-c", script}, runtime.RunOptions{Timeout: 10 * time.Second})
		if err != nil || res.ExitCode < 128 && !strings.Contains(string(res.Stderr), "limit") {
			t.Errorf("%s: %+v, %v: no crash", script, res, err)
		}
	}
	if got := output(t, rt, runtime.RunOptions{}, "find", "/workspace", "/tmp", "/home/node", "/dev/shm", "-type", "f"); got != "" {
		t.Errorf("in the guest's tree: %s", got)
	}
	if after := glob("core*", "/core*", "/var/lib/systemd/coredump/*", "/var/crash/*", os.TempDir()+"/core*"); len(after) > len(before) {
		t.Errorf("on the host: %v, before %v", after, before)
	}
}

// Scripts lower the limit of core files. The call succeeds, and the limit stays 1, the
// only value that prevents the host's core handler from starting.
func TestEscapeCoreLimit(t *testing.T) {
	rt := create(t, runtime.Options{})
	script := "ulimit -c 0; ulimit -S -c 0; ulimit -H -c 0; ulimit -c unlimited; ulimit -c; read end"
	p, err := rt.Spawn(t.Context(), "sh", []string{"-ec", script}, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "0\n" { // in blocks
		t.Errorf("%q, %v", line, err)
	}
	processes := processesIn(jailGroups())
	core := regexp.MustCompile(`(?m)^Max core file size +1 +1 +bytes`)
	for _, pid := range processes {
		if limits, err := os.ReadFile("/proc/" + pid + "/limits"); err != nil || !core.Match(limits) {
			t.Errorf("process %s has the limits, %v\n%s", pid, err, limits)
		}
	}
	if len(processes) < 2 { // pid 1 and the shell
		t.Errorf("processes %v", processes)
	}
}

// hostHasInotify reports whether this process, root, gets an inotify instance.
func hostHasInotify() bool {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// socketPages are the pages that all TCP sockets of the machine hold.
func socketPages(t *testing.T) int64 {
	t.Helper()
	for _, line := range lines("/proc/net/sockstat") {
		_, text, found := strings.Cut(line, " mem ")
		var pages int64
		if _, err := fmt.Sscan(text, &pages); found && strings.HasPrefix(line, "TCP:") && err == nil {
			return pages
		}
	}
	t.Fatal("the kernel does not tell")
	return 0
}
