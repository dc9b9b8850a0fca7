package escape

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// noNetwork denies all IP sockets.
var noNetwork = policy.Permissions{Network: policy.Scope{Default: policy.Deny}}

// The queues of netlink sockets are charged to no cgroup, so a run gets only a few sockets
// at a time.
func TestEscapeNetlinkMemory(t *testing.T) {
	for name, p := range map[string]policy.Permissions{"denied": noNetwork, "localhost": {}} {
		t.Run(name, func(t *testing.T) {
			rt := harness.CreatePermitted(t, p)
			hoard := harness.Install(t, rt, "hoard")
			taken := harness.StartCommand(t, rt, hoard, "route", "1000", "60")
			if harness.InGVisor() {
				if taken.First != "0 ENOBUFS" {
					t.Errorf("took %q where netlink is not available", taken.First)
				}
				return
			}
			count, reason, _ := strings.Cut(taken.First, " ")
			if n, err := strconv.Atoi(count); err != nil || n < 1 || n > 16 || reason != "ENOBUFS" {
				t.Errorf("took %q", taken.First)
			}
			// Each run has its own limit.
			if got := harness.Output(t, rt, runtime.RunOptions{}, hoard, "route", "1", "0"); !strings.HasPrefix(got, "1 ") {
				t.Errorf("after one run took %s, another gets %s", taken.First, got)
			}
		})
	}
}

func skipWithoutNetlink(t *testing.T) {
	t.Helper()
	if harness.InGVisor() {
		t.Skip("netlink is not available in gVisor: TestInside has the error")
	}
}

// A closed netlink socket makes room for another one, even if other processes had it.
func TestNetworkInterfaces(t *testing.T) {
	skipWithoutNetlink(t)
	const code = `
		import os from 'node:os'; import dns from 'node:dns/promises'; import { spawnSync } from 'node:child_process';
		for (let i = 0; i < 100; i++) os.networkInterfaces();
		await Promise.all(Array.from({ length: 50 }, () => dns.lookup('localhost')));
		const { stdout } = spawnSync(process.execPath, ['-p', 'Object.keys(os.networkInterfaces()).join()'], { encoding: 'utf8' });
		__return([Object.keys(os.networkInterfaces()).join(), stdout.trim()])`
	for want, p := range map[string]policy.Permissions{`["",""]`: noNetwork, `["lo","lo"]`: {}} {
		if res := harness.Run(t, harness.CreatePermitted(t, p), code, runtime.RunOptions{}); string(res.Value) != want || len(res.Denials) > 0 {
			t.Errorf("%s, %v, want %s: %s", res.Value, res.Denials, want, res.Stderr)
		}
	}
	res := harness.Run(t, harness.CreatePermitted(t, policy.Strict()), `import os from 'node:os'; __return(os.networkInterfaces())`, runtime.RunOptions{})
	if string(res.Value) != "{}" {
		t.Errorf("strict: %s %s", res.Value, res.Stderr)
	}
}

// Linux charges file locks to no cgroup: a run that holds too many is killed, other runs are
// not. Those of gVisor are memory of the sandbox.
func TestEscapeLockMemory(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	hoard := harness.Install(t, rt, "hoard")
	if harness.InGVisor() {
		checkLocksCharged(t, rt, hoard)
	} else {
		checkLocksLimited(t, rt, hoard)
	}
	if got := harness.Output(t, rt, runtime.RunOptions{}, hoard, "open-file-lock", "1", "0"); got != "0 EINVAL" {
		t.Errorf("locks of open files: %s", got)
	}
}

func checkLocksLimited(t *testing.T, rt *runtime.NodeRuntime, hoard string) {
	t.Helper()
	modest := harness.StartCommand(t, rt, hoard, "lock", "1000", "60")
	res, err := rt.Command(t.Context(), hoard, []string{"lock", "100000000", "0"}, runtime.RunOptions{})
	if err != nil || res.Cause != runtime.CauseMemory {
		t.Errorf("cause %q, %s, %v", res.Cause, res.Stdout, err)
	}
	if !modest.Quiet() {
		t.Error("a run with 1,000 locks was killed, too")
	}
}

func checkLocksCharged(t *testing.T, rt *runtime.NodeRuntime, hoard string) {
	t.Helper()
	before := sandboxMemory(t)
	taken := harness.StartCommand(t, rt, hoard, "lock", "100000", "60")
	if grown := sandboxMemory(t) - before; taken.First != "100000 0" || grown < 100_000*32 {
		t.Errorf("took %q, and the sandbox has %d bytes more", taken.First, grown)
	}
}

// sandboxMemory returns how many bytes the cgroups of sandboxes contain.
func sandboxMemory(t *testing.T) (sum int) {
	t.Helper()
	for _, group := range harness.JailCgroups() {
		for _, file := range harness.Glob(group+"/memory.current", group+"/memory.usage_in_bytes") {
			n, err := strconv.Atoi(harness.Lines(file)[0])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// SQLite's locks work, also between its connections.
func TestSQLiteLocks(t *testing.T) {
	res := harness.Run(t, harness.Create(t, runtime.Options{}), `
		import { DatabaseSync } from 'node:sqlite';
		const one = new DatabaseSync('a.db', { timeout: 0 }), two = new DatabaseSync('a.db', { timeout: 0 });
		one.exec('CREATE TABLE t (n); BEGIN IMMEDIATE; INSERT INTO t VALUES (1)');
		let error; try { two.exec('INSERT INTO t VALUES (2)') } catch (e) { error = e.errstr }
		one.exec('COMMIT'); two.exec('INSERT INTO t VALUES (2)');
		__return([error, one.prepare('SELECT count(*) n FROM t').get().n])`, runtime.RunOptions{})
	if got := string(res.Value); got != `["database is locked",2]` {
		t.Errorf("%s %s", got, res.Stderr)
	}
}

// A guest gets its netlink socket however often signals interrupt the host's threads.
func TestNetworkInterfacesDespiteSignals(t *testing.T) {
	tier.Soak(t)
	skipWithoutNetlink(t)
	stop := make(chan struct{})
	var senders sync.WaitGroup
	senders.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, path := range harness.Glob("/proc/self/task/*") {
				if tid, err := strconv.Atoi(filepath.Base(path)); err == nil {
					_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // the Go runtime's own signal, which does no harm
				}
			}
		}
	})
	defer senders.Wait()
	defer close(stop)
	res := harness.Run(t, harness.CreatePermitted(t, policy.Permissions{}), `
		import os from 'node:os';
		for (let i = 0; i < process.argv[2]; i++) os.networkInterfaces();
		__return('done')`, runtime.RunOptions{Args: []string{"3000"}, Timeout: 5 * time.Minute})
	if string(res.Value) != `"done"` {
		t.Errorf("%s%s", res.Value, res.Stderr)
	}
}
