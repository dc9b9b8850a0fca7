package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

const stopper = `
	import { readdirSync } from 'node:fs';
	console.log('up');
	for (;;) for (const pid of readdirSync('/proc')) if (Number(pid) > 1 && pid != process.pid) try { process.kill(pid, 'SIGSTOP') } catch {}`

// A program that stops other processes of its runtime as they start cannot delay the host,
// however many runs start.
func TestNeighbourStopsStarts(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}})
	stop := harness.StartProgram(t, rt, stopper)
	var mu sync.Mutex
	stopped := 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			began := time.Now()
			res, err := rt.Run(t.Context(), `__return(1)`, runtime.RunOptions{Timeout: 500 * time.Millisecond})
			if err != nil {
				t.Error(err)
				return
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("took %v", took)
			}
			mu.Lock()
			defer mu.Unlock()
			if res.Cause == runtime.CauseTimeout {
				stopped++
			}
		})
	}
	wg.Wait()
	stop()
	if stopped == 0 {
		t.Error("the neighbour stopped no run: this test proves nothing")
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("afterwards: %+v", res)
	}
}

// A program that opens another run's output and writes to it without end cannot delay the
// end of that run.
func TestNeighbourHoldsOutput(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	stop := harness.StartProgram(t, rt, `
		import fs from 'node:fs';
		const held = new Map(), seen = {};
		console.log('up');
		for (;;) {
			for (const pid of fs.readdirSync('/proc')) if (Number(pid) > 1 && pid != process.pid && !held.has(pid)) {
				// gVisor keeps the owner of a process that was looked at before it executed a program.
				seen[pid] = (seen[pid] ?? 0) + 1;
				if (seen[pid] > 50) try { if (fs.readFileSync('/proc/' + pid + '/comm', 'utf8') == 'sleep\n') held.set(pid, fs.openSync('/proc/' + pid + '/fd/1', 'w')) } catch {}
			}
			for (const fd of held.values()) try { fs.writeSync(fd, 'x') } catch {}
			await new Promise(r => setTimeout(r, 2));
		}`)
	defer stop()
	got := 0
	harness.InTime(500*time.Millisecond, func(length time.Duration) bool {
		began := time.Now()
		res, err := rt.Command(t.Context(), "sleep", []string{fmt.Sprint(length.Seconds())}, runtime.RunOptions{Timeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - length; late > 15*time.Second {
			t.Errorf("it ended %v late", late)
		}
		got += len(res.Stdout)
		return got > 0
	})
	if got == 0 {
		t.Error("the neighbour wrote to no run: this test proves nothing")
	}
}

// A run's output is complete even if it enlarged its pipe and ended immediately.
func TestEnlargedPipe(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res := harness.Run(t, rt, `
		import { execFileSync } from 'node:child_process'; import fs from 'node:fs';
		for (let i = 0; i < 100; i++) fs.writeSync(1, 'y'.repeat(10007));
		process.kill(process.pid, 'SIGKILL')`, runtime.RunOptions{OnStdout: func([]byte) { time.Sleep(5 * time.Millisecond) }})
	if len(res.Stdout) != 1000700 {
		t.Errorf("got %d bytes", len(res.Stdout))
	}
}

// A failing reader for standard input fails the run. A program that does not read its input
// does not.
func TestStdinFails(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("abc"), readerFunc(func([]byte) (int, error) { return 0, broken }))
	_, err := rt.Run(t.Context(), `for await (const c of process.stdin);`, runtime.RunOptions{Stdin: in})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	// A program that does not read its input is no error.
	res, err := rt.Run(t.Context(), `process.stdin.destroy()`, runtime.RunOptions{Stdin: strings.NewReader(strings.Repeat("x", 1<<20))})
	if err != nil || res.ExitCode != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A full heap is reported even if V8's message is beyond the captured output.
func TestHeapFullAfterFlood(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 128 << 20, Output: 1000}})
	res := harness.Run(t, rt, `import fs from 'node:fs'; fs.writeSync(2, 'x'.repeat(50000)); const a = []; for (;;) a.push({})`, runtime.RunOptions{})
	if res.Cause != runtime.CauseMemory || len(res.Stderr) != 1000 {
		t.Errorf("cause %q, %s, %d bytes", res.Cause, res.Signal, len(res.Stderr))
	}
}

// A child that was killed for memory long ago is not reported as the cause of a timeout.
func TestTimeoutAfterChildDied(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Memory: 96 << 20}})
	res, _ := runInTime(t, rt, `
		import { spawnSync } from 'node:child_process';
		console.log(spawnSync(process.execPath, ['-e', 'const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))']).signal);
		setInterval(() => {}, 1000);`, &runtime.RunOptions{Timeout: 2 * time.Second}, func(res *runtime.Result) bool { return len(res.Stdout) > 0 })
	if res.Cause != runtime.CauseTimeout || string(res.Stdout) != "SIGKILL\n" {
		t.Errorf("cause %q, stdout %s", res.Cause, res.Stdout)
	}
}

// A hostile program that delays the starts in one runtime does not delay another's.
func TestHeldUpStartsDelayNoOtherRuntime(t *testing.T) {
	rt, other := harness.Create(t, runtime.Options{Limits: runtime.Limits{CPUs: 2}}), harness.Create(t, runtime.Options{})
	stop := harness.StartProgram(t, rt, stopper)
	var held sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 100 {
		held.Go(func() { _, _ = rt.Command(ctx, "true", nil, runtime.RunOptions{}) })
	}
	began := time.Now()
	for range 3 {
		if res := harness.Run(t, other, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
			t.Errorf("%+v", res)
		}
	}
	if took := time.Since(began); took > 20*time.Second { // less than the timeout of a start
		t.Errorf("three runs took %v", took)
	} else {
		t.Logf("three runs took %v", took)
	}
	cancel()
	held.Wait()
	stop()
}
