package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
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

// wait waits for a process, for two minutes at most.
func wait(t testing.TB, p *runtime.Process) *runtime.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := p.Wait(ctx)
	if res == nil || err != nil && !errors.Is(err, runtime.ErrClosed) {
		t.Fatal(err)
	}
	return res
}

func send(t testing.TB, p *runtime.Process, text string) {
	t.Helper()
	if _, err := io.WriteString(p.Stdin, text); err != nil {
		t.Fatal(err)
	}
}

func TestSpawnStreams(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
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
			harness.Expect(t, out, fmt.Sprintf("got line %d\n", i))
			harness.Expect(t, errs, fmt.Sprintf("pid %d\n", p.PID()))
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

// A process blocks until its output is read, and the host buffers only a bounded part.
func TestSpawnBackPressure(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const total = 64 << 20
	before := harness.LiveHeap()
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", fmt.Sprintf(`head -c %d /dev/zero; echo done >&2`, total))
	time.Sleep(300 * time.Millisecond)
	select {
	case <-p.Done():
		t.Fatal("it did not wait")
	default:
	}
	measured, n, most := 0, 0, int64(0)
	for buf := make([]byte, 256<<10); ; {
		m, err := p.Stdout.Read(buf)
		if n += m; err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n/(8<<20) > measured {
			measured = n / (8 << 20)
			most = max(most, harness.LiveHeap()-before)
		}
	}
	if n != total {
		t.Errorf("%d bytes of %d arrived", n, total)
	}
	if most > 16<<20 {
		t.Errorf("the host used %d bytes", most)
	}
	if text, err := io.ReadAll(p.Stderr); err != nil || string(text) != "done\n" {
		t.Errorf("%q, %v", text, err)
	}
	if res := wait(t, p); res.ExitCode != 0 {
		t.Errorf("%+v", res)
	}
}

// Everything that was printed before the end can be read, whenever that happens.
func TestSpawnLosesNothing(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	fds := harness.OpenDescriptors()
	var all []*runtime.Process
	for range 8 {
		p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "head -c 65536 /dev/zero | tr '\\0' x; head -c 60000 /dev/zero >&2; exit 3")
		if res := wait(t, p); res.ExitCode != 3 {
			t.Errorf("%+v", res)
		}
		all = append(all, p)
	}
	more := harness.Settle(4, func() int64 { return int64(harness.OpenDescriptors() - fds) }) // a process may be starting in advance
	if more > 4 {
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

// A run that has another's pipe open does not delay the caller.
func TestSpawnOutputEndsWithIt(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", "echo mine; read x")
	harness.Expect(t, bufio.NewReader(p.Stdout), "mine\n")
	thief := spawn(t, rt, runtime.SpawnOptions{}, "sh", "-c", fmt.Sprintf("exec 3>/proc/%d/fd/1 4</proc/%d/fd/0 || exit; echo open; while :; do echo theirs >&3; done", p.PID(), p.PID()))
	out := bufio.NewReader(thief.Stdout)
	if text, _ := out.ReadString('\n'); text != "open\n" {
		thief.Kill()
		p.Kill()
		t.Fatal("it has no way to the pipes: this test proves nothing")
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
	rt := harness.Create(t, runtime.Options{})
	p := spawn(t, rt, runtime.SpawnOptions{}, "sleep", "100")
	failed := make(chan error)
	go func() {
		_, err := p.Stdin.Write(make([]byte, 10<<20))
		failed <- err
	}()
	select {
	case err := <-failed:
		t.Fatalf("a write that was not read: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	p.Kill()
	if err := <-failed; !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	wait(t, p)
}
