package run

import (
	"bufio"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

func TestSpawnSignals(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	for _, tc := range []struct {
		code   string
		signal syscall.Signal
		exit   int
		cause  runtime.Cause
		name   string
	}{
		{`process.on('SIGTERM', () => process.exit(7))`, unix.SIGTERM, 7, "", ""},
		{``, unix.SIGTERM, 143, runtime.CauseSignal, "SIGTERM"},
		{``, unix.SIGKILL, 137, runtime.CauseCanceled, "SIGKILL"},
		{`process.on('SIGHUP', () => process.exit(1))`, unix.SIGHUP, 1, "", ""},
	} {
		p := spawnCode(t, rt, tc.code+`; setInterval(() => {}, 1000); console.log('up')`, runtime.SpawnOptions{})
		harness.Expect(t, bufio.NewReader(p.Stdout), "up\n")
		if err := p.Signal(tc.signal); err != nil {
			t.Error(err)
		}
		if res := wait(t, p); res.ExitCode != tc.exit || res.Cause != tc.cause || res.Signal != tc.name {
			t.Errorf("%v: %+v", tc.signal, res)
		}
		for _, signal := range []func(syscall.Signal) error{p.Signal, p.SignalGroup} {
			if err := signal(unix.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("after the end: %v", err)
			}
			if err := signal(0); !errors.Is(err, unix.EINVAL) {
				t.Errorf("no signal: %v", err)
			}
			if err := signal(65); !errors.Is(err, unix.EINVAL) {
				t.Errorf("no signal: %v", err)
			}
		}
		p.Kill()
	}
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", `trap 'wait; echo all' TERM; (trap 'echo one; exit' TERM; echo up; while :; do sleep 0.01; done) & wait`)
	out := bufio.NewReader(p.Stdout)
	harness.Expect(t, out, "up\n")
	if err := p.SignalGroup(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	harness.Expect(t, out, "one\n")
	harness.Expect(t, out, "all\n")
	wait(t, p)
}

// A stopped process can be continued and killed. So can a whole tree that has left its
// group and session.
func TestSpawnKill(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "while :; do echo tick; sleep 0.01; done")
	out := bufio.NewReader(p.Stdout)
	harness.Expect(t, out, "tick\n")
	for _, s := range []syscall.Signal{unix.SIGSTOP, unix.SIGCONT} {
		if err := p.Signal(s); err != nil {
			t.Error(err)
		}
	}
	harness.Expect(t, out, "tick\n")
	if err := p.Signal(unix.SIGSTOP); err != nil {
		t.Error(err)
	}
	p.Kill()
	if res := wait(t, p); res.Cause != runtime.CauseCanceled || res.Signal != "SIGKILL" {
		t.Errorf("%+v", res)
	}
	p = spawnCode(t, rt, `
		import { spawn } from 'node:child_process';
		for (let i = 0; i < 5; i++) spawn('setsid', ['sh', '-c', 'trap "" TERM HUP; sleep 100 & echo up; sleep 100'], { detached: true, stdio: 'inherit' });
		setInterval(() => {}, 1000)`, runtime.SpawnOptions{})
	out = bufio.NewReader(p.Stdout)
	for range 5 {
		harness.Expect(t, out, "up\n")
	}
	p.Kill()
	if res := wait(t, p); res.Cause != runtime.CauseCanceled || res.Usage.PeakPids > 0 && res.Usage.PeakPids < 10 {
		t.Errorf("%+v", res)
	}
	harness.WaitFor(t, "pid 1, which reaps all processes but the program that counts", func() bool {
		return string(harness.Run(t, rt, `import fs from 'node:fs'; __return(fs.readdirSync('/proc').filter(n => /^\d/.test(n)).length)`, runtime.RunOptions{}).Value) == "2"
	})
}

func TestSpawnEnds(t *testing.T) {
	short := harness.Create(t, runtime.Options{Limits: runtime.Limits{CPUTime: 300 * time.Millisecond}})
	long := harness.Create(t, runtime.Options{}) // filling memory takes longer on a busy machine
	for _, tc := range []struct {
		name  string
		rt    *runtime.NodeRuntime
		o     runtime.SpawnOptions
		code  string
		cause runtime.Cause
	}{
		{"processor time", short, runtime.SpawnOptions{}, `for (;;);`, runtime.CauseCPU},
		{"memory", long, runtime.SpawnOptions{}, `const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))`, runtime.CauseMemory},
		{"by itself", short, runtime.SpawnOptions{}, `process.exit(0)`, ""},
	} {
		if res := wait(t, spawnCode(t, tc.rt, tc.code, tc.o)); res.Cause != tc.cause {
			t.Errorf("%s: %+v", tc.name, res)
		}
	}
	if res := wait(t, spawnInTime(t, long, 500*time.Millisecond, "sleep", "1000")); res.Cause != runtime.CauseTimeout {
		t.Errorf("time: %+v", res)
	}
}

// spawnInTime starts a program with a time limit, which is longer if a busy machine needs that to start it.
func spawnInTime(t testing.TB, rt *runtime.NodeRuntime, least time.Duration, name string, args ...string) (p *runtime.Process) {
	t.Helper()
	var err error
	harness.InTime(least, func(limit time.Duration) bool {
		p, err = rt.Spawn(t.Context(), name, args, runtime.SpawnOptions{Timeout: limit})
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
