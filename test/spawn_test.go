package test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
)

func spawn(t testing.TB, rt *runtime.NodeRuntime, o runtime.SpawnOptions, args ...string) *runtime.Process {
	t.Helper()
	p, err := rt.Spawn(t.Context(), args[0], args[1:], o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func spawnCode(t testing.TB, rt *runtime.NodeRuntime, code string, o runtime.SpawnOptions) *runtime.Process {
	t.Helper()
	p, err := rt.SpawnCode(t.Context(), code, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// wait waits for a process, but not for ever.
func wait(t testing.TB, p *runtime.Process) *runtime.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	res, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// expect reads until a text has come, but not for ever, and returns all up to its end.
func expect(t testing.TB, r *bufio.Reader, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	var mu sync.Mutex
	var all []byte
	came := make(chan error, 1)
	go func() {
		for {
			b, err := r.ReadByte()
			mu.Lock()
			if err == nil {
				all = append(all, b)
			}
			found := bytes.HasSuffix(all, []byte(text))
			mu.Unlock()
			if err != nil || found {
				came <- err
				return
			}
		}
	}()
	var err error
	select {
	case err = <-came:
	case <-time.After(15 * time.Second):
		err = os.ErrDeadlineExceeded
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		t.Fatalf("%q did not come, %v: %q", text, err, all)
	}
	return string(all)
}

func send(t testing.TB, p *runtime.Process, text string) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin, text); err != nil {
		t.Fatal(err)
	}
}

func TestSpawnTalks(t *testing.T) {
	rt := create(t, runtime.Options{})
	for name, p := range map[string]*runtime.Process{
		"code": spawnCode(t, rt, `
			import { createInterface } from 'node:readline';
			for await (const line of createInterface({ input: process.stdin })) { console.log('got', line); console.error('pid', process.pid); }
			__return(process.argv.slice(2)); process.exitCode = 5`, runtime.SpawnOptions{Args: []string{"a", "b"}, Env: map[string]string{"X": "1"}}),
		"program": spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", `while read line; do echo got $line; echo pid $$ >&2; done; exit 5`),
	} {
		out, errs := bufio.NewReader(p.Stdout), bufio.NewReader(p.Stderr)
		for i := range 3 {
			send(t, p, fmt.Sprintf("line %d\n", i))
			expect(t, out, fmt.Sprintf("got line %d\n", i))
			expect(t, errs, fmt.Sprintf("pid %d\n", p.PID()))
		}
		select {
		case <-p.Done():
			t.Errorf("%s: it has ended", name)
		default:
		}
		if err := errors.Join(p.Stdin.Close(), p.Stdin.Close()); err != nil {
			t.Error(err)
		}
		res := wait(t, p)
		if res.ExitCode != 5 || res.Cause != "" || res.Duration <= 0 || res.Usage.CPU <= 0 || res.Stdout != nil {
			t.Errorf("%s: %+v", name, res)
		}
		if name == "code" && string(res.Value) != `["a","b"]` {
			t.Errorf("returned %s", res.Value)
		}
		if _, err := io.WriteString(p.Stdin, "x"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: writing after the end: %v", name, err)
		}
		for _, r := range []io.Reader{out, errs} {
			if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
				t.Errorf("%s: after the end: %q, %v", name, rest, err)
			}
		}
	}
}

// A process waits for who reads its output, and costs the host no memory meanwhile.
func TestSpawnBackPressure(t *testing.T) {
	rt := create(t, runtime.Options{})
	const total = 64 << 20
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", fmt.Sprintf(`head -c %d /dev/zero; echo done >&2`, total))
	time.Sleep(300 * time.Millisecond)
	select {
	case <-p.Done():
		t.Fatal("it did not wait")
	default:
	}
	before := hostMemory(t)
	n, most := 0, int64(0)
	for buf := make([]byte, 256<<10); ; {
		m, err := p.Stdout.Read(buf)
		if n += m; err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		most = max(most, hostMemory(t)-before)
	}
	if n != total {
		t.Errorf("%d bytes of %d came", n, total)
	}
	if most > 16<<20 {
		t.Errorf("the host took %d bytes", most)
	}
	if text, err := io.ReadAll(p.Stderr); err != nil || string(text) != "done\n" {
		t.Errorf("%q, %v", text, err)
	}
	if res := wait(t, p); res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

func hostMemory(t testing.TB) (bytes int64) {
	t.Helper()
	var pages int64
	if _, err := fmt.Sscan(lines("/proc/self/statm")[0], new(int64), &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// What was printed before the end comes, whoever reads it, and when.
func TestSpawnLosesNothing(t *testing.T) {
	rt := create(t, runtime.Options{})
	fds := openDescriptors()
	var all []*runtime.Process
	for range 8 {
		p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "head -c 65536 /dev/zero | tr '\\0' x; head -c 60000 /dev/zero >&2; exit 3")
		if res := wait(t, p); res.ExitCode != 3 {
			t.Errorf("%+v", res)
		}
		all = append(all, p)
	}
	if more := openDescriptors() - fds; more > 4 {
		t.Errorf("ended processes hold %d descriptors", more)
	}
	for _, p := range all {
		out, err1 := io.ReadAll(p.Stdout)
		errs, err2 := io.ReadAll(p.Stderr)
		if err := errors.Join(err1, err2); err != nil || strings.Trim(string(out), "x") != "" || len(out) != 65536 || len(errs) != 60000 {
			t.Errorf("%d and %d bytes, %v", len(out), len(errs), err)
		}
	}
	p := spawnCode(t, rt, `process.stdout.write('y'.repeat(10e6), () => process.exit(0))`, runtime.SpawnOptions{})
	if out, err := io.ReadAll(p.Stdout); err != nil || len(out) != 10e6 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	wait(t, p)
}

// A run that has another's pipe open does not keep its caller waiting.
func TestSpawnOutputEndsWithIt(t *testing.T) {
	rt := create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "echo mine; read x")
	expect(t, bufio.NewReader(p.Stdout), "mine\n")
	thief := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", fmt.Sprintf("exec 3>/proc/%d/fd/1 4</proc/%d/fd/0 || exit; echo open; while :; do echo theirs >&3; done", p.PID(), p.PID()))
	out := bufio.NewReader(thief.Stdout)
	if text, _ := out.ReadString('\n'); text != "open\n" {
		thief.Kill()
		p.Kill()
		t.Skip("a run has no way to another's pipes")
	}
	time.AfterFunc(100*time.Millisecond, func() { p.Kill() })
	if text, err := io.ReadAll(p.Stdout); err != nil {
		t.Errorf("%.100q, %v", text, err)
	}
	wait(t, p)
	thief.Kill()
	wait(t, thief)
}

func TestSpawnStdinWaits(t *testing.T) {
	rt := create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "sleep", "100")
	failed := make(chan error)
	go func() {
		_, err := p.Stdin.Write(make([]byte, 10<<20))
		failed <- err
	}()
	select {
	case err := <-failed:
		t.Fatalf("nobody has read it: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	p.Kill()
	if err := <-failed; !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	wait(t, p)
}

func TestSpawnSignals(t *testing.T) {
	rt := create(t, runtime.Options{})
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
		expect(t, bufio.NewReader(p.Stdout), "up\n")
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
	expect(t, out, "up\n")
	if err := p.SignalGroup(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	expect(t, out, "one\n")
	expect(t, out, "all\n")
	wait(t, p)
}

// A stopped process can be gone on with, and be killed; so can a whole tree that has left its
// group and session.
func TestSpawnKill(t *testing.T) {
	rt := create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "while :; do echo tick; sleep 0.01; done")
	out := bufio.NewReader(p.Stdout)
	expect(t, out, "tick\n")
	for _, s := range []syscall.Signal{unix.SIGSTOP, unix.SIGCONT} {
		if err := p.Signal(s); err != nil {
			t.Error(err)
		}
	}
	expect(t, out, "tick\n")
	if err := p.Signal(unix.SIGSTOP); err != nil {
		t.Error(err)
	}
	p.Kill()
	if res := wait(t, p); res.Cause != runtime.CauseCanceled || res.Signal != "SIGKILL" {
		t.Errorf("%+v", res)
	}
	p = spawnCode(t, rt, `
		import { spawn } from 'node:child_process';
		for (let i = 0; i < 5; i++) spawn('setsid', ['sh', '-c', 'trap "" TERM HUP; sleep 100 & sleep 100'], { detached: true, stdio: 'inherit' });
		setTimeout(() => console.log('up'), 100); setInterval(() => {}, 1000)`, runtime.SpawnOptions{})
	expect(t, bufio.NewReader(p.Stdout), "up\n")
	p.Kill()
	if res := wait(t, p); res.Cause != runtime.CauseCanceled || res.Usage.PeakPids > 0 && res.Usage.PeakPids < 10 {
		t.Errorf("%+v", res)
	}
	if res := run(t, rt, `import fs from 'node:fs'; __return(fs.readdirSync('/proc').filter(n => /^\d/.test(n)).length)`, runtime.RunOptions{}); string(res.Value) != "2" { // pid 1 and itself
		t.Errorf("%s processes are left", res.Value)
	}
}

func TestSpawnEnds(t *testing.T) {
	rt := create(t, runtime.Options{Limits: runtime.Limits{CPUTime: 300 * time.Millisecond}})
	for _, tc := range []struct {
		name  string
		o     runtime.SpawnOptions
		code  string
		cause runtime.Cause
	}{
		{"time", runtime.SpawnOptions{Timeout: 500 * time.Millisecond}, `setInterval(() => {}, 1000)`, runtime.CauseTimeout},
		{"processor time", runtime.SpawnOptions{}, `for (;;);`, runtime.CauseCPU},
		{"memory", runtime.SpawnOptions{}, `const all = []; for (;;) all.push(Buffer.alloc(1 << 20, 1))`, runtime.CauseMemory},
		{"by itself", runtime.SpawnOptions{}, `process.exit(0)`, ""},
	} {
		if res := wait(t, spawnCode(t, rt, tc.code, tc.o)); res.Cause != tc.cause {
			t.Errorf("%s: %+v", tc.name, res)
		}
	}
}

func TestSpawnRefuses(t *testing.T) {
	rt := create(t, runtime.Options{})
	for _, tc := range []struct {
		name string
		args []string
		o    runtime.SpawnOptions
		want error
	}{
		{"/no/such", nil, runtime.SpawnOptions{}, fs.ErrNotExist},
		{"/etc/passwd", nil, runtime.SpawnOptions{}, fs.ErrPermission},
		{"true", nil, runtime.SpawnOptions{Cwd: "/no/such"}, fs.ErrNotExist},
		{"", nil, runtime.SpawnOptions{}, nil},
		{"true", []string{"\x00"}, runtime.SpawnOptions{}, nil},
		{"true", nil, runtime.SpawnOptions{Args: []string{"x"}}, nil},
		{"true", nil, runtime.SpawnOptions{Timeout: -1}, nil},
		{"true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{Rows: 1}}, nil},
		{"true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: "a b"}}, nil},
		{"true", nil, runtime.SpawnOptions{Terminal: &runtime.Terminal{Term: strings.Repeat("x", 65)}}, nil},
		{"true", nil, runtime.SpawnOptions{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Allow}}}, nil},
		{"true", nil, runtime.SpawnOptions{Timeout: time.Nanosecond}, context.DeadlineExceeded},
	} {
		p, err := rt.Spawn(t.Context(), tc.name, tc.args, tc.o)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.HasPrefix(err.Error(), "gaol: spawn: ") {
			t.Errorf("%q %+v: %v, %v", tc.name, tc.o, p, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.ErrNoProgress)
	if _, err := rt.Spawn(ctx, "true", nil, runtime.SpawnOptions{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("canceled: %v", err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := rt.SpawnCode(t.Context(), "", runtime.SpawnOptions{}); !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// ctx bounds the start, at whatever moment it ends, and nothing but the start.
func TestSpawnCanceledInTheMiddle(t *testing.T) {
	rt := create(t, runtime.Options{})
	started, canceled := 0, 0
	for i := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i)*200*time.Microsecond, cancel)
		p, err := rt.Spawn(ctx, "sleep", []string{"100"}, runtime.SpawnOptions{})
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			canceled++
			cancel()
			continue
		}
		started++
		cancel()
		time.Sleep(time.Millisecond)
		select {
		case <-p.Done():
			t.Errorf("a context that has done its work ended %d", i)
		default:
		}
		p.Kill()
		wait(t, p)
	}
	t.Logf("%d started, %d canceled", started, canceled)
	if canceled == 0 {
		t.Error("none was canceled: this test proves nothing")
	}
	if left := rt.Processes(); len(left) > 0 {
		t.Errorf("%+v", left)
	}
}

// Close ends what was spawned, and what is being.
func TestSpawnAndClose(t *testing.T) {
	for i := range 8 {
		rt := create(t, runtime.Options{})
		up := spawn(t, rt, runtime.SpawnOptions{Terminal: []*runtime.Terminal{nil, {}}[i%2]}, "sh", "-c", "sleep 100 & sleep 100")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					p, err := rt.Spawn(t.Context(), "cat", nil, runtime.SpawnOptions{})
					if errors.Is(err, runtime.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
					p.Kill()
				}
			})
		}
		time.Sleep(time.Duration(i) * 5 * time.Millisecond)
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		select {
		case <-up.Done():
			if res := wait(t, up); res.Cause != runtime.CauseCanceled {
				t.Errorf("%+v", res)
			}
		default:
			t.Error("Close came back before its processes had ended")
		}
		all.Wait()
	}
}

func TestSpawnFiftyAtOnce(t *testing.T) {
	const n = 50
	rt := create(t, runtime.Options{MaxConcurrentRuns: n})
	var all sync.WaitGroup
	ps := make([]*runtime.Process, n)
	for i := range n {
		all.Go(func() {
			p, err := rt.Spawn(t.Context(), "cat", nil, runtime.SpawnOptions{Terminal: []*runtime.Terminal{nil, {}}[i%2]})
			if err != nil {
				t.Error(err)
				return
			}
			ps[i] = p
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	list := rt.Processes()
	if len(list) != n {
		t.Errorf("%d processes are listed", len(list))
	}
	// Each takes up a turn for as long as it lives.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := rt.Spawn(ctx, "true", nil, runtime.SpawnOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one too many: %v", err)
	}
	for i, p := range ps {
		all.Go(func() {
			text := fmt.Sprintf("hello %d\n", i)
			send(t, p, text)
			expect(t, bufio.NewReader(p.Stdout), fmt.Sprintf("hello %d", i))
			p.Stdin.Close()
			if res := wait(t, p); res.ExitCode != 0 {
				t.Errorf("%+v", res)
			}
		})
	}
	all.Wait()
	if list := rt.Processes(); len(list) > 0 {
		t.Errorf("%+v", list)
	}
}

func TestProcesses(t *testing.T) {
	rt := create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "cat", "-")
	up, ended := make(chan struct{}), make(chan *runtime.Result)
	go func() {
		res, _ := rt.Run(t.Context(), `console.log('up'); setInterval(() => {}, 1000)`, runtime.RunOptions{
			Name: "job.mjs", Args: []string{"x"}, OnStdout: func([]byte) { close(up) },
		})
		ended <- res
	}()
	<-up
	list := rt.Processes()
	if len(list) != 2 || list[0].PID != p.PID() || list[0].Name != "cat" || !slices.Equal(list[0].Args, []string{"-"}) || list[1].Name != "job.mjs" || !slices.Equal(list[1].Args, []string{"x"}) {
		t.Fatalf("%+v", list)
	}
	for _, info := range list {
		if info.PID < 2 || info.Usage.CPU <= 0 || info.Usage.Memory <= 0 || time.Since(info.Started) > time.Minute {
			t.Errorf("%+v", info)
		}
	}
	if usage, err := p.Usage(); err != nil || usage.Memory <= 0 {
		t.Errorf("%+v, %v", usage, err)
	}
	if err := rt.Kill(list[1].PID); err != nil {
		t.Error(err)
	}
	if res := <-ended; res == nil || res.Cause != runtime.CauseCanceled {
		t.Errorf("%+v", res)
	}
	for _, pid := range []int{list[1].PID, 0, -1, 1, 1 << 30} {
		if err := rt.Kill(pid); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("kill %d: %v", pid, err)
		}
	}
	if err := rt.Kill(p.PID()); err != nil {
		t.Error(err)
	}
	res := wait(t, p)
	if usage, err := p.Usage(); err != nil || usage != res.Usage || usage.Memory != 0 {
		t.Errorf("after the end: %+v, %v, want %+v", usage, err, res.Usage)
	}
}

// A program is started where programs may start none, and what it is denied is told.
func TestSpawnDenials(t *testing.T) {
	rt := create(t, runtime.Options{Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}})
	for _, terminal := range []*runtime.Terminal{nil, {}} {
		p := spawn(t, rt, runtime.SpawnOptions{Terminal: terminal}, "sh", "-c", "echo up; (true); echo no")
		text, err := io.ReadAll(p.Stdout)
		res := wait(t, p)
		if err != nil || !strings.HasPrefix(string(text), "up") || res.ExitCode == 0 {
			t.Errorf("%q, %v, %+v", text, err, res)
		}
		if len(res.Denials) != 1 || res.Denials[0].Scope != policy.ChildProcess {
			t.Errorf("%+v", res.Denials)
		}
	}
	p := spawn(t, create(t, runtime.Options{}), runtime.SpawnOptions{Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}}, "sh", "-c", "echo up; (true); echo no")
	if res := wait(t, p); len(res.Denials) != 1 {
		t.Errorf("%+v", res)
	}
}
