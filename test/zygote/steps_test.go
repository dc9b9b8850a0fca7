package zygote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/enter"
	"gaol/jail/seccomp"
	"gaol/jail/zygote"
	"gaol/rootfs"
	"gaol/test/harness"
)

// faulty is a zygote whose first child works, whose next children each have one fault while
// they enter the jail, and whose later children work again. Of each two children, one is
// killed and one stops at the same point: before each statement of enter or begin_program
// in src/child.c, and after the last. Then, for each step of enum step, the call of one
// child fails.
type faulty struct {
	points int
	steps  []string // those that a child checks with must, in the order of enum step
}

const faultySource = `
static int turn; /* the number of the last fork */

static void point(int n)
{
	if ((turn - 2) / 2 == n && turn >= 2)
		kill(getpid(), turn % 2 ? SIGSTOP : SIGKILL);
}
`

// source is zygote.Source with the faults.
func (f *faulty) source(t *testing.T) string {
	t.Helper()
	source := zygote.Source
	for _, head := range []string{"static void enter(napi_env env, int pidfd)\n{\n", "static void begin_program(void)\n{\n"} {
		before, rest, ok1 := strings.Cut(source, head)
		body, after, ok2 := strings.Cut(rest, "\n}\n")
		if !ok1 || !ok2 {
			t.Fatalf("%q is not in the source as expected", head)
		}
		source = before + head + f.withPoints(body) + "\n}\n" + after
	}
	for at, what := range map[string]string{
		"static pid_t fork_into(int cgroup)\n{\n":           "\tturn++;\n",
		"static void must(enum step step, int result)\n{\n": fmt.Sprintf("\tif (turn - 2 - 2 * %d == (int)step - 1) {\n\t\terrno = EXFULL;\n\t\tresult = -1;\n\t}\n", f.points),
		"enum step {\n": "",
	} {
		if strings.Count(source, at) != 1 {
			t.Fatalf("%q is not in the source once", at)
		}
		source = strings.Replace(source, at, at+what, 1)
	}
	at := strings.Index(source, "/* As fork, but")
	return source[:at] + faultySource + source[at:]
}

// withPoints adds a fault point before each statement of a function's body, and after the
// last.
func (f *faulty) withPoints(body string) string {
	body = regexp.MustCompile(`(?m)^\t\b`).ReplaceAllStringFunc(body, func(tab string) string {
		f.points++
		return fmt.Sprintf("\tpoint(%d);\n%s", f.points-1, tab)
	}) + fmt.Sprintf("\n\tpoint(%d);", f.points)
	f.points++
	return body
}

func compileFaulty(t *testing.T, source string) []byte {
	t.Helper()
	to := filepath.Join(t.TempDir(), "zygote.so")
	cc := exec.Command("cc", "-x", "c", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", to, "-")
	cc.Stdin = strings.NewReader(source)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	object, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// ranCode is the exit code of a child that ran its program.
const ranCode = 7

// The time limits of a child that stops, and of one that does not.
const moment, whole = 150 * time.Millisecond, 10 * time.Second

// zygoteOf returns zygotes of the image with another object, and without helper threads.
func zygoteOf(t *testing.T, image *rootfs.Image, object []byte) *zygote.Pool {
	t.Helper()
	return zygoteWith(t, image, object, fmt.Sprintf(`serve(); process.exit(%d)`, ranCode), "--single-threaded", "--v8-pool-size=0")
}

// zygoteWith returns zygotes that run a script, which can call serve and receive.
func zygoteWith(t *testing.T, image *rootfs.Image, object []byte, source string, flags ...string) *zygote.Pool {
	t.Helper()
	const script = "/usr/libexec/gaol/zygote.cjs"
	const binding = `const b = process._linkedBinding('gaol');
const kept = [new Int32Array(3), new Float64Array(8)]; // the binding writes into them
const serve = () => b.serve(...kept), { receive } = b;
%s`
	pool := zygote.NewPool(zygote.Spec{
		Image: image.Root(),
		Layer: []zygote.File{
			{Path: zygote.Path, Data: object},
			{Path: script, Data: fmt.Appendf(nil, binding, source)},
		},
		Args: append(append([]string{"/usr/local/bin/node", "--disable-sigusr1"}, flags...), script),
		Dir:  jail.DefaultStateDir, Cgroup: harness.Parent,
	}, zygote.Options{})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return pool
}

func jailOf(t *testing.T, image *rootfs.Image) *jail.Jail {
	t.Helper()
	filter, err := seccomp.Compile(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	j, err := jail.Create(t.Context(), jail.Spec{
		Tree: jail.Tree{Image: image.Root(), Disk: 1 << 20, Inodes: 64}, Hostname: "cell",
		Reaper: []string{enter.Reaper, "-P"}, Filter: filter, CgroupParent: harness.Parent,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// forkOnce runs a child for limit at most, and returns how it ended.
func forkOnce(t *testing.T, j *jail.Jail, pool *zygote.Pool, limit time.Duration) (jail.Exit, error) {
	t.Helper()
	return runOnce(t, j, jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 64 << 20, CPUs: 1, Pids: 16}}, limit)
}

// runOnce is forkOnce for a command, to which it adds a program and a terminal.
func runOnce(t *testing.T, j *jail.Jail, c jail.Command, limit time.Duration) (jail.Exit, error) {
	t.Helper()
	term, err := j.OpenTerminal(jail.TerminalSize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c.Path, c.Args, c.Script, c.Dir = "/usr/local/bin/node", []string{"main"}, 1, "/tmp"
	c.Stdin, c.Stdout, c.Stderr, c.Terminal = term.Guest, term.Guest, term.Guest, true
	p, err := j.Start(ctx, c)
	if err != nil {
		return jail.Exit{}, err
	}
	defer context.AfterFunc(ctx, p.Kill)()
	return p.Wait()
}

// A child that dies, stops or fails between any two steps of entering the jail is a run
// that ended so, or an error that names the step. Nothing is left of it, and the next child
// of the same zygote works.
func TestZygoteChildFailsAtEachStep(t *testing.T) {
	f := &faulty{steps: []string{
		"request", "cgroup", "arguments", "namespaces", "descriptors", "session", "terminal", "limit", "user", "capabilities", "chdir", "no_new_privs", "seccomp",
	}}
	image := harness.DefaultImage(t)
	pool, j := zygoteOf(t, image, compileFaulty(t, f.source(t))), jailOf(t, image)
	sound := func() {
		if exit, err := forkOnce(t, j, pool, whole); err != nil || exit.Code != ranCode {
			t.Fatalf("a sound child: %+v, %v", exit, err)
		}
	}
	sound()
	zygotes := harness.Zygotes(t)
	for point := range f.points {
		if exit, err := forkOnce(t, j, pool, whole); err != nil || exit.Signal != unix.SIGKILL {
			t.Errorf("killed at point %d: %+v, %v", point, exit, err)
		}
		harness.CheckNoRuns(t)
		exit, err := forkOnce(t, j, pool, moment)
		if !errors.Is(err, context.DeadlineExceeded) && (err != nil || exit.Signal != unix.SIGKILL) {
			t.Errorf("stopped at point %d: %+v, %v", point, exit, err)
		}
		harness.CheckNoRuns(t)
	}
	f.failSteps(t, j, pool)
	sound()
	if now := harness.Zygotes(t); !slices.Equal(now, zygotes) {
		t.Errorf("zygotes %v, before %v", now, zygotes)
	}
}

func (f *faulty) failSteps(t *testing.T, j *jail.Jail, pool *zygote.Pool) {
	t.Helper()
	var failed []string
	for range strings.Count(enumStep(t), "STEP_") {
		exit, err := forkOnce(t, j, pool, whole)
		if err == nil && exit.Code == ranCode {
			continue // a step that is checked elsewhere, for example by the zygote
		}
		step, ok := errors.AsType[*jail.StepError](err)
		if !ok || !errors.Is(err, unix.EXFULL) {
			t.Errorf("after %v: %+v, %v", failed, exit, err)
			continue
		}
		failed = append(failed, step.Step)
		harness.CheckNoRuns(t)
	}
	want := f.steps
	if v, err := cgroup.Detect(); err == nil && v == cgroup.V2 {
		want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s == "cgroup" }) // on v2 a child is created in its cgroup
	}
	if !slices.Equal(slices.Sorted(slices.Values(failed)), slices.Sorted(slices.Values(want))) {
		t.Errorf("failed at %v, want %v", failed, want)
	}
}

func enumStep(t *testing.T) string {
	t.Helper()
	_, list, _ := strings.Cut(zygote.Source, "enum step {")
	list, _, ok := strings.Cut(list, "}")
	if !ok {
		t.Fatal("the source has no enum step")
	}
	return list
}

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

// If a run has no room for a helper thread, it gets one later. Code that waits for its
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

// A parked process that gets no program leaves no descriptors for the garbage collector to
// close.
func TestZygoteParkedUnused(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	image := harness.DefaultImage(t)
	pool, j := zygoteOf(t, image, compileFaulty(t, zygote.Source)), jailOf(t, image)
	c := jail.Command{Zygote: pool, OpenFiles: 64, Limits: cgroup.Limits{Memory: 64 << 20, CPUs: 1, Pids: 16}}
	before := 0
	for i := range 10 {
		parked, err := j.Park(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for parked.Kill(); parked.Alive(); {
			time.Sleep(time.Millisecond)
		}
		if i == 0 {
			before = len(harness.Glob("/proc/self/fd/*")) // some descriptors are opened once and kept
		}
	}
	if after := len(harness.Glob("/proc/self/fd/*")); after > before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

// Failures in the zygote are reported like failures in the child, and harm no other child.
func TestZygoteFails(t *testing.T) {
	image := harness.DefaultImage(t)
	object, err := os.ReadFile(image.Root() + zygote.Path)
	if err != nil {
		t.Fatal(err)
	}
	pool, j := zygoteOf(t, image, object), jailOf(t, image)
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	own, dead := pidfd(t, exec.Command("sleep", "60"), false), pidfd(t, exec.Command("true"), true)
	for _, tc := range []struct {
		step  string
		entry zygote.Entry
	}{
		{"pid namespace", zygote.Entry{Jail: dead}},
		{"pid namespace", zygote.Entry{Jail: root}},
		{"clone", zygote.Entry{Jail: own, Cgroup: root}},
	} {
		_, err := pool.Fork(t.Context(), &tc.entry, &zygote.Program{Args: []string{"node"}, Dir: "/", Files: []*os.File{root, root, root}})
		if failed, ok := errors.AsType[*jail.StepError](err); !ok || failed.Step != tc.step {
			t.Errorf("%v, want a failed %s", err, tc.step)
		}
		if exit, err := forkOnce(t, j, pool, whole); err != nil || exit.Code != ranCode {
			t.Errorf("the next child: %+v, %v", exit, err)
		}
	}
}

// pidfd starts a process and returns a pidfd of it.
func pidfd(t *testing.T, c *exec.Cmd, ended bool) *os.File {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(c.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() {
		f.Close()
		if !ended {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	if ended {
		_ = c.Wait()
	}
	return f
}
