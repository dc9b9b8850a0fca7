package permissions

import (
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

var noProcess = policy.Permissions{Process: denied}

// signalWays each send the victim a real-time signal, in this order.
var signalWays = []string{"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "group"}

func TestPermissionSignal(t *testing.T) {
	for _, tc := range []struct {
		name    string
		p       policy.Permissions
		allowed bool
	}{{"denied", noProcess, false}, {"only inspect", processOnly("inspect"), false}, {"only signal", processOnly("signal"), true}, {"allowed", policy.Permissions{}, true}} {
		t.Run(tc.name, func(t *testing.T) {
			if !tc.p.IsZero() {
				harness.Require(t, runtime.FeatureLandlock, tc.p)
			}
			rt := harness.CreatePermitted(t, tc.p)
			proc := harness.Install(t, rt, "proc")
			victim := harness.StartCommand(t, rt, proc, "victim")
			got := answers(harness.Output(t, rt, runtime.RunOptions{}, proc, "signal", victim.First))
			want := "EPERM"
			if tc.allowed {
				want = "ok"
			}
			for _, way := range append([]string{"nothing"}, signalWays...) {
				if got[way] != want {
					t.Errorf("%s: %s, want %s", way, got[way], want)
				}
			}
			res := harness.Run(t, rt, `const all = {};
				for (const pid of [+process.argv[2], 1]) try { process.kill(pid, 'SIGCONT'); all[pid] = 'ok' } catch (e) { all[pid] = e.code }
				process.kill(process.pid, 0); __return([all[process.argv[2]], all[1]])`, runtime.RunOptions{Args: []string{victim.First}})
			if string(res.Value) != `["`+want+`","EPERM"]` {
				t.Errorf("of Node: %s", res.Value)
			}
			most := 0
			if tc.allowed {
				most = len(signalWays) + 2 // two ways report nothing: fcntl, and kill(-1)
			}
			hits := map[string]bool{} // a signal through a pipe may arrive twice
			for len(hits) < most {
				hits[victim.Next(t)] = true
			}
			for _, line := range victim.Stop() {
				hits[line] = true
			}
			if len(hits) != most {
				t.Errorf("the other run got %v", hits)
			}
		})
	}
}

// A program can do everything with its own processes.
func TestPermissionOwnProcesses(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, noProcess)
	rt := harness.CreatePermitted(t, noProcess)
	proc := harness.Install(t, rt, "proc")
	want := map[string]string{"environ": "ok", "listed": "ok", "kill": "ok", "wait": "ok", "self": "ok"}
	wantSame(t, "its own child", want, answers(harness.Output(t, rt, runtime.RunOptions{}, proc, "own")))
	got := attempts(t, rt, `
		import { spawn } from 'node:child_process'; import { once } from 'node:events'; import fs from 'node:fs';
		const child = spawn('sleep', ['100']); await once(child, 'spawn');
		await attempt('see', () => fs.readFileSync('/proc/' + child.pid + '/comm', 'utf8').trim());
		await attempt('all', () => fs.readdirSync('/proc').filter(Number).map(Number).filter(p => p != process.pid && p != child.pid).join());
		await attempt('stop', async () => { child.kill(); return (await once(child, 'exit'))[1] });
		await attempt('itself', async () => { process.on('SIGUSR2', () => {}); const t = setTimeout(() => {}, 5000); process.kill(process.pid, 'SIGUSR2'); await once(process, 'SIGUSR2'); clearTimeout(t) });
		await attempt('environ', () => String(fs.readFileSync('/proc/self/environ').length > 0));
		await attempt('fds', () => String(fs.readdirSync('/proc/self/fd').length > 0));
		await attempt('memory', () => String(process.memoryUsage().rss > 0));`, runtime.RunOptions{})
	wantSame(t, "Node's child", map[string]string{
		"see": "sleep", "all": "", "stop": "SIGTERM", "itself": "ok", "environ": "true", "fds": "true", "memory": "true",
	}, got)
}

// Without inspect, another run is invisible. Tracing is never allowed, whatever the
// permissions are.
func TestPermissionInspect(t *testing.T) {
	public := []string{"cmdline", "status", "stat", "fd", "listed"}
	private := []string{"environ", "mem", "maps", "exe"}
	traces := []string{"attach", "seize", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp"}
	for _, tc := range []struct {
		name, public, private string
		p                     policy.Permissions
	}{
		{"denied", "ENOENT", "ENOENT", noProcess},
		{"only signal", "ENOENT", "ENOENT", processOnly("signal")},
		{"only inspect", "ok", "EACCES", processOnly("inspect")}, // each run is a Landlock domain
		{"allowed", "ok", "ok", policy.Permissions{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !tc.p.IsZero() {
				harness.Require(t, runtime.FeatureLandlock, tc.p)
			}
			rt := harness.CreatePermitted(t, tc.p)
			proc := harness.Install(t, rt, "proc")
			victim := harness.StartCommand(t, rt, proc, "victim")
			got := answers(harness.Output(t, rt, runtime.RunOptions{}, proc, "inspect", victim.First))
			want := map[string]string{}
			for _, kind := range []struct {
				ways []string
				want string
			}{{public, tc.public}, {private, tc.private}, {traces, "EPERM"}} {
				for _, way := range kind.ways {
					want[way] = kind.want
				}
			}
			if harness.InGVisor() {
				want["mem"] = "EACCES"
			}
			wantSame(t, "another run", want, got)
			res := harness.Run(t, rt, `import fs from 'node:fs'; __return(fs.readdirSync('/proc').filter(Number).map(Number).filter(p => p != process.pid))`, runtime.RunOptions{})
			seen := "[1," + victim.First + "]"
			if tc.public != "ok" {
				seen = "[]"
			}
			if string(res.Value) != seen {
				t.Errorf("Node sees %s, want %s", res.Value, seen)
			}
		})
	}
}

// Setting limits of another run counts as a signal.
func TestPermissionLimitsOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		p    policy.Permissions
		want string
	}{"denied": {noProcess, "EPERM"}, "allowed": {policy.Permissions{}, "ok"}} {
		t.Run(name, func(t *testing.T) {
			if !tc.p.IsZero() {
				harness.Require(t, runtime.FeatureLandlock, tc.p)
			}
			rt := harness.CreatePermitted(t, tc.p)
			proc := harness.Install(t, rt, "proc")
			victim := harness.StartCommand(t, rt, proc, "victim")
			got := answers(harness.Output(t, rt, runtime.RunOptions{}, proc, "bystand", victim.First))
			for way, want := range map[string]string{"prlimit": "ok", "prlimit-set": tc.want, "prlimit-own": "ok", "setpriority": "ok", "getpgid": "ok"} {
				if got[way] != want {
					t.Errorf("%s: %s, want %s", way, got[way], want)
				}
			}
		})
	}
}

// processOnly allows one operation on other processes.
func processOnly(op policy.Operation) policy.Permissions {
	return policy.Permissions{Process: allowing([]policy.Operation{op})}
}
