package escape

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// CVE-2020-15257: abstract sockets have no file, so only the network namespace separates
// them.
func TestEscapeAbstractSockets(t *testing.T) {
	a, b := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	harness.StartCommand(t, a, "node", "-e", `require('net').createServer(s => s.end('hi')).listen({ path: '\0gaol-escape' }, () => console.log('up'))`)
	const connect = `import net from 'node:net';
		net.connect({ path: '\0gaol-escape' }).on('error', e => __return(e.code)).on('data', d => __return(String(d)))`
	if res := harness.Run(t, a, connect, runtime.RunOptions{}); string(res.Value) != `"hi"` {
		t.Errorf("in its own sandbox: %s %s: the test proves nothing", res.Value, res.Stderr)
	}
	if res := harness.Run(t, b, connect, runtime.RunOptions{}); string(res.Value) != `"ECONNREFUSED"` {
		t.Errorf("from another sandbox: %s %s", res.Value, res.Stderr)
	}
}

// One sandbox does not see the files of another, in memory or not. Package jail's
// TestJailsAreApart tests locks.
func TestEscapeSharedFiles(t *testing.T) {
	a, b := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	const folders = "/dev/shm /tmp /workspace /home/node"
	harness.Output(t, a, runtime.RunOptions{}, "sh", "-c", "for d in "+folders+"; do echo x >$d/mark || exit 1; done")
	const marks = "for d in " + folders + "; do cat $d/mark 2>/dev/null; done; true"
	if got := harness.Output(t, a, runtime.RunOptions{}, "sh", "-c", marks); got != "x\nx\nx\nx" {
		t.Errorf("in the same sandbox: %q: the test proves nothing", got)
	}
	if got := harness.Output(t, b, runtime.RunOptions{}, "sh", "-c", marks); got != "" {
		t.Errorf("of another sandbox: %q", got)
	}
}

// A guest that sends signals to every pid reaches neither another sandbox nor the host.
func TestEscapeSignals(t *testing.T) {
	a, b := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	victim := harness.StartCommand(t, a, "sh", "-c", "echo up; sleep 2; echo alive")
	res := harness.Run(t, b, `import { existsSync } from 'node:fs';
		let hit = 0;
		for (let pid = 1; pid < 70000; pid++) {
			if (existsSync('/proc/self/task/' + pid)) continue; // kill accepts the id of a thread, too
			try { process.kill(pid, 'SIGKILL'); hit++ } catch (e) { if (e.code !== 'ESRCH') console.log(pid, e.code) }
		}
		__return(hit)`, runtime.RunOptions{})
	if string(res.Value) != "0" || string(res.Stdout) != "1 EPERM\n" {
		t.Errorf("%s processes were hit, %s%s", res.Value, res.Stdout, res.Stderr)
	}
	if got := victim.Next(t); got != "alive" {
		t.Errorf("the other sandbox's process: %q", got)
	}
}

// A crash leaves no core file, even if the guest asks for one.
func TestEscapeCoreDump(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Disk: 256 << 20}})
	before := harness.Glob("core*", "/core*", "/var/lib/systemd/coredump/*", "/var/crash/*", os.TempDir()+"/core*")
	for _, script := range []string{"kill -SEGV $$", "ulimit -c unlimited; kill -SEGV $$", "ulimit -c 1; kill -ABRT $$", "exec node --abort-on-uncaught-exception -e 'throw 1'"} {
		res, err := rt.Command(t.Context(), "sh", []string{"-c", script}, runtime.RunOptions{Timeout: 10 * time.Second})
		if err != nil || res.ExitCode < 128 && !strings.Contains(string(res.Stderr), "limit") {
			t.Errorf("%s: %+v, %v: no crash", script, res, err)
		}
	}
	if got := harness.Output(t, rt, runtime.RunOptions{}, "find", "/workspace", "/tmp", "/home/node", "/dev/shm", "-type", "f"); got != "" {
		t.Errorf("in the guest's tree: %s", got)
	}
	if after := harness.Glob("core*", "/core*", "/var/lib/systemd/coredump/*", "/var/crash/*", os.TempDir()+"/core*"); len(after) > len(before) {
		t.Errorf("on the host: %v, before %v", after, before)
	}
}

// Scripts lower the limit of core files. The call succeeds, and the limit stays 1, the
// only value that prevents the host's core handler from starting.
func TestEscapeCoreLimit(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	script := "ulimit -c 0; ulimit -S -c 0; ulimit -H -c 0; ulimit -c unlimited; ulimit -c; read end"
	p, err := rt.Spawn(t.Context(), "sh", []string{"-ec", script}, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if line, err := bufio.NewReader(p.Stdout).ReadString('\n'); err != nil || line != "0\n" { // in blocks
		t.Errorf("%q, %v", line, err)
	}
	processes := harness.ProcessesIn(harness.JailCgroups())
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
