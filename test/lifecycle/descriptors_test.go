package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// starvedUses are uses of a runtime. Each succeeds, or fails with EMFILE.
var starvedUses = []struct {
	name string
	do   func(ctx context.Context, rt *runtime.NodeRuntime) error
}{
	{"run", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		return gives("1")(rt.Run(ctx, `__return(1)`, runtime.RunOptions{}))
	}},
	{"run with input", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		o := runtime.RunOptions{Stdin: strings.NewReader("2"), OnStdout: func([]byte) {}}
		return gives("2")(rt.Run(ctx, `console.log(1); __return(+require('fs').readFileSync(0))`, withName(o, "x.cjs")))
	}},
	{"exec", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		return gives("")(rt.Exec(ctx, `1`, runtime.RunOptions{}))
	}},
	{"command", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		return gives("")(rt.Command(ctx, "true", nil, runtime.RunOptions{}))
	}},
	{"evaluate", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		e, err := rt.Evaluate(ctx, `1 + 1`, runtime.EvaluateOptions{})
		if err == nil && string(e.Value) != "2" {
			err = fmt.Errorf("evaluated to %s, %+v", e.Value, e.Error)
		}
		return err
	}},
	{"spawn", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		return spawnTrue(ctx, rt, runtime.SpawnOptions{})
	}},
	{"terminal", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		return spawnTrue(ctx, rt, runtime.SpawnOptions{Terminal: &runtime.Terminal{}})
	}},
	{"context", func(ctx context.Context, rt *runtime.NodeRuntime) error {
		c, err := rt.NewContext(ctx, runtime.ContextOptions{})
		if err != nil {
			return err
		}
		return c.Close()
	}},
	{"create", func(ctx context.Context, _ *runtime.NodeRuntime) error {
		rt, err := runtime.Create(ctx, harness.Options(runtime.Options{Mounts: []runtime.Mount{
			{Source: "/usr/share", Target: "/a"}, {Source: "/usr/share", Target: "/b", Access: runtime.CopyOnWrite},
		}}))
		if err != nil {
			return err
		}
		return rt.Close()
	}},
	{"pool", func(ctx context.Context, _ *runtime.NodeRuntime) error {
		pool, err := runtime.NewPool(harness.Options(runtime.Options{}), runtime.PoolOptions{Size: 1})
		if err != nil {
			return err
		}
		rt, err := pool.Get(ctx)
		if err == nil {
			err = rt.Close()
		}
		return errors.Join(err, pool.Close())
	}},
}

func withName(o runtime.RunOptions, name string) runtime.RunOptions {
	o.Name = name
	return o
}

// gives checks the result of a run that gaol could make.
func gives(value string) func(*runtime.Result, error) error {
	return func(res *runtime.Result, err error) error {
		if err == nil && (string(res.Value) != value || res.ExitCode != 0 || res.Cause != "") {
			err = fmt.Errorf("a run of another result: %+v", res)
		}
		return err
	}
}

func spawnTrue(ctx context.Context, rt *runtime.NodeRuntime, o runtime.SpawnOptions) error {
	p, err := rt.Spawn(ctx, "true", nil, o)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, p.Stdout)
	return errors.Join(err, gives("")(p.Wait(ctx)))
}

// starve repeats a use with more and more descriptors until it succeeds three times in a
// row.
func starve(rt *runtime.NodeRuntime, limit unix.Rlimit, do func(context.Context, *runtime.NodeRuntime) error) (failures int) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fmt.Println("wrong:", err)
	}
	for few, worked := uint64(len(open)-4), 0; worked < 3; few++ {
		setFiles(unix.Rlimit{Cur: few, Max: limit.Max})
		err := do(context.Background(), rt)
		setFiles(limit)
		if err == nil {
			worked++
			continue
		}
		failures, worked = failures+1, 0
		if !errors.Is(err, unix.EMFILE) || strings.Contains(err.Error(), unix.EBADF.Error()) {
			fmt.Printf("wrong: with %d: %v\n", few, err)
		}
		if failures > 300 {
			fmt.Println("wrong: it does not work again:", err)
			return failures
		}
	}
	return failures
}

func setFiles(l unix.Rlimit) {
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		fmt.Println("wrong:", err)
	}
}

// runStarvedHost does everything with too few descriptors.
func runStarvedHost() {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		fmt.Println("wrong:", err)
	}
	rt, err := runtime.Create(context.Background(), harness.Options(runtime.Options{}))
	if err != nil {
		fmt.Println("wrong:", err)
		return
	}
	for _, u := range starvedUses {
		if err := u.do(context.Background(), rt); err != nil { // some descriptors are opened once and kept
			fmt.Printf("wrong: %s: %v\n", u.name, err)
		}
	}
	for _, u := range starvedUses {
		fmt.Printf("%s failed %d times\n", u.name, starve(rt, limit, u.do))
	}
	if err := errors.Join(rt.Close(), runtime.CloseIdle()); err != nil {
		fmt.Println("wrong:", err)
	}
	fmt.Println("done")
}

// Without descriptors every use returns EMFILE, leaves nothing behind, and works again when
// there are descriptors.
func TestWithoutDescriptors(t *testing.T) {
	before := harness.TakeInventory()
	text, err := hostProgram(t, "starved").CombinedOutput()
	unlimited := strings.Count(string(text), " failed 0 times")
	if harness.HasAgent() {
		unlimited -= strings.Count(string(text), "terminal failed 0 times") // its descriptors are the agent's
	}
	if err != nil || !strings.HasSuffix(string(text), "done\n") || strings.Contains(string(text), "wrong: ") || unlimited > 0 {
		t.Errorf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
	before.CheckLeaks(t)
}
