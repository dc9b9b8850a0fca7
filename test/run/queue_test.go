package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// peak polls a number until the returned function is called, which returns the maximum.
func peak(number func() int) (most func() int) {
	end, result := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		for {
			most = max(most, number())
			select {
			case <-end:
				result <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int {
		close(end)
		return <-result
	}
}

// A thousand runs that are requested together all complete. The host needs descriptors and
// runs only for those whose turn it is.
func TestThousandRunsAtOnce(t *testing.T) {
	tier.Soak(t)
	for _, runtimes := range []int{1, 20} {
		t.Run(fmt.Sprint(runtimes, " runtimes"), func(t *testing.T) {
			const total, atOnce = 1000, 16
			var rts []*runtime.NodeRuntime
			for range runtimes {
				rts = append(rts, harness.CreateForking(t, runtime.Options{MaxConcurrentRuns: atOnce}))
			}
			harness.Run(t, rts[0], ``, runtime.RunOptions{}) // starts the zygote
			before := harness.OpenDescriptors()
			descriptors, runs := peak(harness.OpenDescriptors), peak(harness.LiveRuns)
			began := time.Now()
			longest := atTheSameTime(t, total, func(i int) (*runtime.Result, error) {
				return rts[i%runtimes].Run(t.Context(), `__return(process.argv[2])`, runtime.RunOptions{Args: []string{fmt.Sprint(i)}, Timeout: time.Minute})
			})
			took, mostDescriptors, mostRuns := time.Since(began), descriptors()-before, runs()
			t.Logf("%v, the last one waited %v; at most %d runs and %d descriptors", took, longest, mostRuns, mostDescriptors)
			if mostRuns > runtimes*atOnce {
				t.Errorf("%d runs at once", mostRuns)
			}
			if most := 15*runtimes*atOnce + 300; mostDescriptors > most { // a starting run has about 15, a run 5, and a jail that is being closed some
				t.Errorf("%d descriptors, want %d at most", mostDescriptors, most)
			}
			if longest < took/4 {
				t.Errorf("the last one waited %v: this test proves nothing", longest)
			}
		})
	}
}

// atTheSameTime makes n runs at the same time, each of which must return its number, and returns the
// longest wait for a turn.
func atTheSameTime(t *testing.T, n int, perform func(i int) (*runtime.Result, error)) (longest time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		all.Go(func() {
			res, err := perform(i)
			if err != nil || string(res.Value) != fmt.Sprintf("%q", fmt.Sprint(i)) {
				t.Errorf("run %d: %+v, %v", i, res, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, res.Queued)
		})
	}
	all.Wait()
	return longest
}

// A run stops waiting for its turn when its context ends or the runtime is closed. The
// wait does not count towards its timeout.
func TestQueueCanceled(t *testing.T) {
	rt := harness.Create(t, runtime.Options{MaxConcurrentRuns: 1})
	up, closed := make(chan struct{}), make(chan struct{})
	go rt.Run(t.Context(), `console.log('up'); setInterval(() => {}, 1000)`, runtime.RunOptions{OnStdout: func([]byte) { close(up) }})
	<-up
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	res, err := rt.Run(ctx, ``, runtime.RunOptions{Timeout: time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) || res.Cause != runtime.CauseCanceled || res.Queued <= 0 || res.Queued > time.Since(began) || res.Duration != 0 {
		t.Errorf("canceled: %+v, %v", res, err)
	}
	go func() {
		defer close(closed)
		res, err := rt.Run(t.Context(), ``, runtime.RunOptions{})
		if !errors.Is(err, runtime.ErrClosed) || res.Cause != runtime.CauseCanceled {
			t.Errorf("closed: %+v, %v", res, err)
		}
	}()
	time.Sleep(50 * time.Millisecond)
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	<-closed
}

// MaxConcurrentRuns runs can wait for each other.
func TestRunsCommunicate(t *testing.T) {
	const n = 8
	rt := harness.Create(t, runtime.Options{MaxConcurrentRuns: n})
	atTheSameTime(t, n, func(i int) (*runtime.Result, error) {
		return rt.Run(t.Context(), `
			import fs from 'node:fs';
			fs.writeFileSync('here' + process.argv[2], '');
			while (fs.readdirSync('.').length < 8) await new Promise(r => setTimeout(r, 5));
			__return(process.argv[2])`, runtime.RunOptions{Args: []string{fmt.Sprint(i)}})
	})
}
