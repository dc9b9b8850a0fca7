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

// A closed netlink socket makes room for another one, even if other processes had it.
func TestNetworkInterfaces(t *testing.T) {
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

// File locks are charged to no cgroup: a run that holds too many is killed, other runs are
// not.
func TestEscapeLockMemory(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	hoard := harness.Install(t, rt, "hoard")
	modest := harness.StartCommand(t, rt, hoard, "lock", "1000", "60")
	res, err := rt.Command(t.Context(), hoard, []string{"lock", "100000000", "0"}, runtime.RunOptions{})
	if err != nil || res.Cause != runtime.CauseMemory {
		t.Errorf("cause %q, %s, %v", res.Cause, res.Stdout, err)
	}
	if !modest.Quiet() {
		t.Error("a run with 1,000 locks was killed, too")
	}
	if got := harness.Output(t, rt, runtime.RunOptions{}, hoard, "open-file-lock", "1", "0"); got != "0 EINVAL" {
		t.Errorf("locks of open files: %s", got)
	}
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
