package run

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// hostProcessors counts the processors of this machine.
func hostProcessors(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`(?m)^processor\s*:`).FindAll(text, -1))
}

// What Node reports about the machine and itself is plausible, although /proc shows little.
func TestProcInNode(t *testing.T) {
	for name, p := range map[string]policy.Permissions{"default": policy.Default(), "open": policy.Open(), "strict": policy.Strict()} {
		t.Run(name, func(t *testing.T) {
			rt := harness.Create(t, runtime.Options{Permissions: p, AllowDegraded: true, Limits: runtime.Limits{CPUs: 4096}})
			res := harness.Run(t, rt, `import os from 'node:os';
				while (process.cpuUsage().user === 0); // the kernel counts it in ticks
				const cpus = os.cpus(), load = os.loadavg(), memory = process.memoryUsage(), used = process.resourceUsage();
				const number = (n) => typeof n === 'number' && Number.isFinite(n);
				__return({ cpus: cpus.length, checks: {
					model: cpus.every(c => c.model.length > 0 && number(c.speed)),
					times: cpus.every(c => Object.values(c.times).every(n => number(n) && n >= 0) && c.times.idle > 0),
					loadavg: load.length === 3 && load.every(n => number(n) && n >= 0),
					uptime: os.uptime() > 0 && os.uptime() >= process.uptime(),
					memory: os.totalmem() >= os.freemem() && os.freemem() > 0,
					rss: memory.rss > 1e6 && memory.rss > memory.heapUsed && process.memoryUsage.rss() > 1e6,
					resources: used.maxRSS > 0 && used.userCPUTime > 0 && used.minorPageFault > 0,
					parallelism: os.availableParallelism() > 0,
					system: os.type() === 'Linux' && /^\d+\.\d+/.test(os.release()) && os.version().startsWith('#'),
				} })`, runtime.RunOptions{})
			var got struct {
				CPUs   int
				Checks map[string]bool
			}
			if err := res.Decode(&got); err != nil {
				t.Fatalf("%v: %s", err, res.Stderr)
			}
			if want := hostProcessors(t); got.CPUs != want {
				t.Errorf("%d processors, the machine has %d", got.CPUs, want)
			}
			for name, ok := range got.Checks {
				if !ok && !(harness.InGVisor() && (name == "times" || name == "resources")) { // it counts neither idle time nor page faults
					t.Errorf("%s is not sensible", name)
				}
			}
		})
	}
}

// Programs that read /proc work.
func TestProcInPrograms(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	total := strings.Fields(harness.Lines("/proc/meminfo")[0])[1] // as sysinfo(2) reports it
	pid := `(?m)^\s*1\s.*catatonit`
	for _, tc := range []struct {
		command, want string // a regular expression
	}{
		{"free", `(?m)^Mem:\s+` + total + `\s`},
		{"ps", pid},
		{"ps -o pid,user,vsz,rss,stat,tty,nice,comm", pid},
		{"top -bn1", pid},
		{"top -bn1", `(?m)^Mem: \d+K used, \d+K free`},
		{"uptime", `load average: \d+\.\d\d, \d+\.\d\d, \d+\.\d\d`},
		{"free", `(?m)^Mem:.*\s262144$`},
		{"nproc", `^[1-9]\d*$`},
		{"df /", `(?m)^tmpfs\s.*\s/$`},
		{"mount", `(?m)^proc on /proc type proc \(ro,`},
		{"pidof catatonit", `^1$`},
		{"cat /proc/sys/kernel/random/uuid", `^[0-9a-f]{8}-[0-9a-f-]{27}$`},
		{"cat /proc/sys/net/core/somaxconn", `^[1-9]\d+$`},
		{"cat /proc/sys/kernel/domainname", `^\(none\)$`},
		{"uname -a", `^Linux secure-exec `},
	} {
		if harness.InGVisor() { // mounts have no sources
			tc.want = strings.NewReplacer("^tmpfs", "^none", "^proc on", "^none on").Replace(tc.want)
		}
		got := harness.Output(t, rt, runtime.RunOptions{}, "busybox", strings.Fields(tc.command)...)
		if !regexp.MustCompile(tc.want).MatchString(got) {
			t.Errorf("%s: no %s in\n%s", tc.command, tc.want, got)
		}
	}
	first, second := harness.Output(t, rt, runtime.RunOptions{}, "cat", "/proc/sys/kernel/random/uuid"), harness.Output(t, rt, runtime.RunOptions{}, "cat", "/proc/sys/kernel/random/uuid")
	if first == second {
		t.Errorf("the same uuid twice: %s", first)
	}
}

// Programs take the boot's id for that of their machine: it is one per sandbox, and not the host's.
func TestBootID(t *testing.T) {
	host, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{strings.TrimSpace(string(host)): true}
	for range 2 {
		rt := harness.Create(t, runtime.Options{})
		read := func() string {
			return harness.Output(t, rt, runtime.RunOptions{}, "cat", "/proc/sys/kernel/random/boot_id")
		}
		id := read()
		if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) || seen[id] {
			t.Errorf("%q, after %v", id, seen)
		}
		if again := read(); again != id {
			t.Errorf("%q in one run, %q in the next", id, again)
		}
		seen[id] = true
	}
}
