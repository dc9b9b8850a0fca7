package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

func TestSpawnFiftyAtOnce(t *testing.T) {
	const n = 50
	rt := harness.Create(t, runtime.Options{MaxConcurrentRuns: n})
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
	// Each counts as a run for as long as it lives.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := rt.Spawn(ctx, "true", nil, runtime.SpawnOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one too many: %v", err)
	}
	for i, p := range ps {
		all.Go(func() {
			text := fmt.Sprintf("hello %d\n", i)
			send(t, p, text)
			harness.Expect(t, bufio.NewReader(p.Stdout), fmt.Sprintf("hello %d", i))
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
	rt := harness.Create(t, runtime.Options{})
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

// Spawn starts a program even if programs may start none, and reports what that program is
// denied.
func TestSpawnDenials(t *testing.T) {
	harness.Require(t, runtime.FeatureExec)
	rt := harness.Create(t, runtime.Options{Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}})
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
	p := spawn(t, harness.Create(t, runtime.Options{}), runtime.SpawnOptions{Permissions: policy.Permissions{ChildProcess: policy.Scope{Default: policy.Deny}}}, "sh", "-c", "echo up; (true); echo no")
	if res := wait(t, p); len(res.Denials) != 1 {
		t.Errorf("%+v", res)
	}
}
