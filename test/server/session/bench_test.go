package session

import (
	"context"
	"net/http"
	"testing"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// BenchmarkSession compares the server with the SDK in process. In each benchmark both take turns in
// the same loop, and the ratio of their times is reported.
func BenchmarkSession(b *testing.B) {
	b.Run("run", benchmarkRun)
	b.Run("function", benchmarkFunction)
	b.Run("once", benchmarkOnce)
	b.Run("clients", benchmarkClients)
}

// options are for the SDK's sandboxes: their cgroup is as deep as the server's.
func options(o runtime.Options) runtime.Options {
	o.Launcher, o.CgroupParent = runtime.LauncherZygote, harness.Parent+"/tenants/sdk"
	return o
}

const program = `__return(6 * 7)`

// benchmarkRun compares a run on a session with one of the SDK.
func benchmarkRun(b *testing.B) {
	rt := harness.CreateExact(b, options(runtime.Options{}))
	sb := createIn(b, dial(b, servertest.Start(b, servertest.Options{})), client.CreateOptions{})
	compare(b, func() error {
		_, err := rt.Run(b.Context(), program, runtime.RunOptions{})
		return err
	}, func() error {
		_, err := sb.Run(b.Context(), program, runtime.RunOptions{})
		return err
	})
}

// benchmarkFunction compares the calls of a host function, which a context makes in one cell.
func benchmarkFunction(b *testing.B) {
	const calls = 500
	add := map[string]any{"add": runtime.NewFunction2("adds", func(_ context.Context, a, b int) (int, error) { return a + b, nil })}
	rt := harness.CreateExact(b, options(runtime.Options{}))
	sb := createIn(b, dial(b, servertest.Start(b, servertest.Options{})), client.CreateOptions{})
	inProcess, err := rt.NewContext(b.Context(), runtime.ContextOptions{Globals: add})
	if err != nil {
		b.Fatal(err)
	}
	remote, err := sb.NewContext(b.Context(), runtime.ContextOptions{Globals: add})
	if err != nil {
		b.Fatal(err)
	}
	o := runtime.EvaluateOptions{MaxCalls: calls}
	const code = `{ let n = 0; for (let i = 0; i < 500; i++) n = add(n, 1); if (n !== 500) throw n }`
	compare(b, func() error {
		e, err := inProcess.Evaluate(b.Context(), code, o)
		return failed(e, err)
	}, func() error {
		e, err := remote.Evaluate(b.Context(), code, o)
		return failed(e, err)
	})
}

func failed(e *runtime.Evaluation, err error) error {
	if err == nil && e.Error != nil {
		return e.Error
	}
	return err
}

// benchmarkOnce compares POST /v1/run with a sandbox from a pool.
func benchmarkOnce(b *testing.B) {
	pool, err := runtime.NewPool(options(runtime.Options{}), runtime.PoolOptions{Size: 4, Park: true})
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	s := servertest.Start(b, servertest.Options{})
	c := s.Client(b, servertest.User{})
	compare(b, func() error {
		return once(b.Context(), pool)
	}, func() error {
		servertest.Send(b, c, http.MethodPost, "/v1/run", map[string]string{"code": program}).Want(b, http.StatusOK)
		return nil
	})
}

func once(ctx context.Context, pool *runtime.Pool) error {
	rt, err := pool.Get(ctx)
	if err != nil {
		return err
	}
	if _, err := rt.Run(ctx, program, runtime.RunOptions{}); err != nil {
		return err
	}
	return rt.Close()
}

// benchmarkClients compares the runs per second of four clients with those of four goroutines.
func benchmarkClients(b *testing.B) {
	const clients, each = 4, 5
	s := servertest.Start(b, servertest.Options{})
	var runtimes []*runtime.NodeRuntime
	var sandboxes []*client.Sandbox
	for range clients {
		runtimes = append(runtimes, harness.CreateExact(b, options(runtime.Options{})))
		sandboxes = append(sandboxes, createIn(b, dial(b, s), client.CreateOptions{}))
	}
	compare(b, func() error {
		return atOnce(clients, each, func(i int) error {
			_, err := runtimes[i].Run(b.Context(), program, runtime.RunOptions{})
			return err
		})
	}, func() error {
		return atOnce(clients, each, func(i int) error {
			_, err := sandboxes[i].Run(b.Context(), program, runtime.RunOptions{})
			return err
		})
	})
}
