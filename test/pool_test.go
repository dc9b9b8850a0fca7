package test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// newPool makes a pool that is closed when the test ends, and checks that nothing is
// left then.
func newPool(t testing.TB, o runtime.Options, p runtime.PoolOptions) *runtime.Pool {
	t.Helper()
	before := takeInventory()
	idle := goleak.IgnoreCurrent()
	pool, err := runtime.NewPool(o, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(pool.Close(), pool.Close()); err != nil {
			t.Error(err)
		}
		if err := runtime.CloseIdle(); err != nil {
			t.Error(err)
		}
		if left := settle(before); len(left) > 0 {
			t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
		}
		if err := goleak.Find(idle); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// use takes a runtime from the pool for one run.
func use(t testing.TB, p *runtime.Pool, code string) *runtime.Result {
	t.Helper()
	rt, err := p.Get(t.Context())
	if err != nil {
		t.Error(err)
		return &runtime.Result{}
	}
	res, err := rt.Run(t.Context(), code, runtime.RunOptions{})
	if err = errors.Join(err, rt.Close()); err != nil {
		t.Error(err)
		return &runtime.Result{}
	}
	return res
}

// Whoever gets a runtime of a pool finds it as new, also in a hurry.
func TestPoolIsAlwaysFresh(t *testing.T) {
	pool := newPool(t, ours(runtime.Options{}), runtime.PoolOptions{Size: 3, Parallel: 2})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range 8 {
				res := use(t, pool, `
					import { existsSync, writeFileSync } from 'node:fs';
					const used = existsSync('mark') || existsSync('/tmp/mark');
					writeFileSync('mark', ''); writeFileSync('/tmp/mark', '');
					__return(used);`)
				if string(res.Value) != "false" {
					t.Errorf("%+v", res)
				}
			}
		})
	}
	users.Wait()
}

// What was handed out outlives its pool.
func TestPoolClosesWithoutItsUsers(t *testing.T) {
	pool := newPool(t, ours(runtime.Options{}), runtime.PoolOptions{Size: 2})
	rt, err := pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if res := run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := pool.Get(t.Context()); !errors.Is(err, runtime.ErrClosed) {
		t.Error(err)
	}
}

// A pool that is closed at any moment, with users waiting, leaves nothing.
func TestPoolClosesAtAnyMoment(t *testing.T) {
	before := takeInventory()
	for range 10 {
		pool, err := runtime.NewPool(ours(runtime.Options{}), runtime.PoolOptions{Parallel: 2})
		if err != nil {
			t.Fatal(err)
		}
		var users sync.WaitGroup
		for range 6 {
			users.Go(func() {
				rt, err := pool.Get(t.Context())
				if err == nil {
					err = rt.Close()
				}
				if err != nil && !errors.Is(err, runtime.ErrClosed) {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
		users.Wait()
	}
	if left := settle(before); len(left) > 0 {
		t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	}
}

// statusOf reads what /proc says of a process: nothing if there is none.
func statusOf(pid string) map[string]string {
	status := map[string]string{}
	for _, line := range lines("/proc/" + pid + "/status") {
		name, value, _ := strings.Cut(line, ":")
		status[name] = strings.TrimSpace(value)
	}
	return status
}

// myReapers are the living pids 1 of this process's jails, once they are what they
// are to be.
func myReapers() []int {
	var found []int
	for _, dir := range glob("/proc/[0-9]*") {
		status := statusOf(filepath.Base(dir))
		pids := strings.Fields(status["NSpid"])
		if status["PPid"] != strconv.Itoa(os.Getpid()) || status["State"][0] == 'Z' || status["Name"] != "catatonit" || len(pids) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(pids[0])
		found = append(found, pid)
	}
	return found
}

// waitFor waits until a condition holds, for 10 seconds.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 seconds still not: %s", what)
		}
	}
}

// A runtime whose jail was killed while it was parked is nobody's.
func TestPoolHandsOutNoDead(t *testing.T) {
	pool := newPool(t, ours(runtime.Options{}), runtime.PoolOptions{Size: 3})
	full := func() bool { return len(myReapers()) == 3 }
	waitFor(t, "three runtimes are ready", full)
	for range 3 {
		killed := myReapers()
		for _, pid := range killed {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		waitFor(t, "they have died", func() bool {
			return !slices.ContainsFunc(myReapers(), func(pid int) bool { return slices.Contains(killed, pid) })
		})
		for i := range 4 {
			if res := use(t, pool, fmt.Sprintf(`__return(%d)`, i)); string(res.Value) != strconv.Itoa(i) {
				t.Errorf("%+v", res)
			}
		}
		waitFor(t, "three runtimes are ready again", full)
	}
}

// What keeps a runtime from being created is what Get returns.
func TestPoolTellsWhy(t *testing.T) {
	o := ours(runtime.Options{Image: "no-such-image"})
	pool := newPool(t, o, runtime.PoolOptions{})
	_, want := runtime.Create(t.Context(), o)
	for range 2 {
		_, err := pool.Get(t.Context())
		if err == nil || want == nil || strings.TrimPrefix(err.Error(), "gaol: get: ") != strings.TrimPrefix(want.Error(), "gaol: create: ") {
			t.Errorf("%v, Create says %v", err, want)
		}
	}
}
