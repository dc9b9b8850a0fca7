package zygote

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/zygote"
	"gaol/runtime"
	"gaol/test/harness"
)

// Landlock rulesets and filters apply to one thread, so a child with a second thread gets
// no program.
func TestZygoteChildIsAlone(t *testing.T) {
	image := harness.DefaultImage(t)
	const at = "static void read_program(void)\n{\n"
	const thread = "static void *wait_for_ever(void *with) { pause(); return with; }\n\n"
	if strings.Count(zygote.Source, at) != 1 {
		t.Fatalf("%q is not in the source once", at)
	}
	source := strings.Replace(zygote.Source, at, thread+at+"\tpthread_t other;\n\tpthread_create(&other, NULL, wait_for_ever, NULL);\n", 1)
	pool, j := zygoteOf(t, image, compileFaulty(t, source)), jailOf(t, image)
	exit, err := forkOnce(t, j, pool, whole)
	if step, ok := errors.AsType[*jail.StepError](err); !ok || step.Step != "no_new_privs" || !errors.Is(err, unix.EBUSY) {
		t.Errorf("%+v, %v, want EBUSY", exit, err)
	}
	harness.CheckNoRuns(t)
}

// V8 gives work to its helper threads at any time, for example to collect garbage. The
// threads of a child sleep until its filter is installed, and then wake up.
func TestZygoteHelpersWakeUnderTheFilter(t *testing.T) {
	const script = `
serve();
for (let i = 0; i < 300; i++) new Array(10000).fill(i).map((i) => ({ i }));
globalThis.gc();
receive();
const { length } = require('node:fs').readdirSync('/proc/self/task');
for (const task of require('node:fs').readdirSync('/proc/self/task')) {
  const status = require('node:fs').readFileSync('/proc/self/task/' + task + '/status', 'utf8');
  if (!/^Seccomp:\t2$/m.test(status) || !/^NoNewPrivs:\t1$/m.test(status)) process.exit(1);
}
process.exit(length > 1 ? 7 : 2)`
	image := harness.DefaultImage(t)
	object, err := os.ReadFile(image.Root() + zygote.Path)
	if err != nil {
		t.Fatal(err)
	}
	pool, j := zygoteWith(t, image, object, script, "--v8-pool-size=4", "--expose-gc"), jailOf(t, image)
	c := jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 256 << 20, CPUs: 1, Pids: 16}}
	for range 5 {
		if c.Parked, err = j.Park(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		exit, err := runOnce(t, j, c, whole)
		if err != nil || exit.Code != ranCode {
			t.Errorf("%+v, %v", exit, err)
		}
		harness.CheckNoRuns(t)
	}
}

// If a run's limits prevent a helper thread, it gets one later. Code that waits for its
// work, as Node does at exit, does not hang.
func TestZygoteHelpersComeWhenThereIsRoom(t *testing.T) {
	const script = `
serve();
for (let i = 0; i < 300; i++) new Array(10000).fill(i).map((i) => ({ i }));
globalThis.gc();
process.on('exit', () => process.exit(require('node:fs').readdirSync('/proc/self/task').length > 1 ? 7 : 2))`
	const clone = "clone(continue_sleeper, "
	if strings.Count(zygote.Source, clone) != 1 {
		t.Fatalf("%q is not in the source once", clone)
	}
	source := strings.Replace(zygote.Source, clone, "refused++ < 20 ? (errno = EAGAIN, -1) : "+clone, 1)
	source = strings.Replace(source, "static int continue_sleeper(", "static int refused;\n\nstatic int continue_sleeper(", 1)
	image := harness.DefaultImage(t)
	pool, j := zygoteWith(t, image, compileFaulty(t, source), script, "--v8-pool-size=4", "--expose-gc"), jailOf(t, image)
	c := jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 256 << 20, CPUs: 1, Pids: 16}}
	if exit, err := runOnce(t, j, c, 3*whole); err != nil || exit.Code != ranCode {
		t.Errorf("%+v, %v", exit, err)
	}
	harness.CheckNoRuns(t)
}

// A small run wakes no helper, which would slow it down. One that has much to compile does.
func TestSmallRunHasOneThread(t *testing.T) {
	const count = `__return(require('node:fs').readdirSync('/proc/self/task').length)`
	for range 3 { // zygotes differ in what V8 compiles in the background
		rt := harness.CreateExact(t, harness.Forking(runtime.Options{}))
		for code, small := range map[string]bool{
			`console.log('hello', { a: 1 }, JSON.stringify([1, 2, 3].map((n) => n * 2)));` + count:                  true,
			`const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2); for (let n = 20; n < 35; n++) fib(n);` + count: false,
		} {
			var threads int
			if err := harness.Run(t, rt, code, runtime.RunOptions{Format: runtime.FormatCommonJS}).Decode(&threads); err != nil {
				t.Fatal(err)
			}
			if threads == 1 != small {
				t.Errorf("%d threads after %s", threads, code)
			}
		}
		if err := errors.Join(rt.Close(), runtime.CloseIdle()); err != nil {
			t.Fatal(err)
		}
	}
}
