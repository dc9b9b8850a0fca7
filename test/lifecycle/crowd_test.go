package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// A host with few descriptors delays runs instead of failing them.
func TestThousandRunsWithFewDescriptors(t *testing.T) {
	tier.Soak(t)
	again := hostProgram(t, "crowd")
	again.Env = append(again.Env, harness.LauncherVar+"=zygote")
	text, err := again.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "0 of 1000 failed\n") {
		t.Errorf("%v\n%.2000s", err, text)
	}
}

// runCrowdHost starts a thousand runs at the same time with a thousand descriptors.
func runCrowdHost() {
	few := unix.Rlimit{Cur: 1024, Max: 4096}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		fmt.Println(err)
	}
	rt, err := runtime.Create(context.Background(), harness.Options(runtime.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	var all sync.WaitGroup
	var failed atomic.Int64
	for range 1000 {
		all.Go(func() {
			if res, err := rt.Run(context.Background(), `__return(1)`, runtime.RunOptions{}); err != nil || string(res.Value) != "1" {
				failed.Add(1)
				fmt.Println(res, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(rt.Close(), runtime.CloseIdle()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(failed.Load(), "of 1000 failed")
}
