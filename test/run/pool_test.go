package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// Every runtime from a pool is unused, also when many are requested together.
func TestPoolIsAlwaysFresh(t *testing.T) {
	pool := harness.NewPool(t, harness.Options(runtime.Options{}), runtime.PoolOptions{Size: 3, Parallel: 2})
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for range harness.Fewer(8, 3) {
				res := harness.RunFromPool(t, pool, `
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

// A runtime from a pool outlives the pool.
func TestPoolClosesWithoutItsUsers(t *testing.T) {
	pool := harness.NewPool(t, harness.Options(runtime.Options{}), runtime.PoolOptions{Size: 2})
	rt, err := pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	if _, err := pool.Get(t.Context()); !errors.Is(err, runtime.ErrClosed) {
		t.Error(err)
	}
}

// A pool that is closed at any moment, with callers waiting, leaves nothing.
func TestPoolClosesAtAnyMoment(t *testing.T) {
	before := harness.TakeInventory()
	for range 10 {
		pool, err := runtime.NewPool(harness.Options(runtime.Options{}), runtime.PoolOptions{Parallel: 2})
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
	before.CheckLeaks(t)
}

// A runtime whose jail was killed while it waited is not returned by Get, but replaced.
func TestPoolReplacesDeadRuntimes(t *testing.T) {
	if harness.InGVisor() {
		t.Skip("runsc starts long before its sandbox is complete, so that the test does not know when the pool is full")
	}
	pool := harness.NewPool(t, harness.Options(runtime.Options{}), runtime.PoolOptions{Size: 3})
	full := func() bool { return len(harness.Reapers()) == 3 }
	harness.WaitFor(t, "three runtimes are ready", full)
	for range 3 {
		killed := harness.Reapers()
		for _, pid := range killed {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		harness.WaitFor(t, "they have died", func() bool {
			return !slices.ContainsFunc(harness.Reapers(), func(pid int) bool { return slices.Contains(killed, pid) })
		})
		for i := range 4 {
			if res := harness.RunFromPool(t, pool, fmt.Sprintf(`__return(%d)`, i)); string(res.Value) != strconv.Itoa(i) {
				t.Errorf("%+v", res)
			}
		}
		harness.WaitFor(t, "three runtimes are ready again", full)
	}
}

// Get returns the error that keeps the pool from creating runtimes.
func TestPoolReturnsCreateErrors(t *testing.T) {
	o := harness.Options(runtime.Options{Image: "no-such-image"})
	pool := harness.NewPool(t, o, runtime.PoolOptions{})
	_, want := runtime.Create(t.Context(), o)
	for range 2 {
		_, err := pool.Get(t.Context())
		if err == nil || want == nil || strings.TrimPrefix(err.Error(), "gaol: get: ") != strings.TrimPrefix(want.Error(), "gaol: create: ") {
			t.Errorf("%v, Create says %v", err, want)
		}
	}
}
