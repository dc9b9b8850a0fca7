package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/runtime/client"
)

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func testFunctions(t *testing.T, c *client.Client) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	sb := createIn(t, c, client.CreateOptions{Bindings: map[string]any{
		"version": "v1",
		"api": map[string]any{
			"name": "geo",
			"add":  runtime.NewFunction("adds", func(_ context.Context, p point) (int, error) { return p.X + p.Y, nil }),
			"in": map[string]any{
				"bytes": runtime.NewFunction0("bytes", func(context.Context) ([]byte, error) { return []byte{0, 255}, nil }),
				"date":  runtime.NewFunction0("date", func(context.Context) (time.Time, error) { return at, nil }),
			},
			"fail":  runtime.NewFunction0("fails", func(context.Context) (int, error) { return 0, &runtime.CallError{Code: "ENOENT", Message: "none"} }),
			"panic": runtime.NewFunction0("panics", func(context.Context) (int, error) { panic("a secret") }),
		},
	}})
	res, err := sb.Run(soon(t), `
		const caught = async f => { try { return await f() } catch (e) { return e.code + ' ' + e.message } };
		__return([version, api.name, api.add({ x: 1, y: 2 }), await api.add.async({ x: 3, y: 4 }),
			[...api.in.bytes()], api.in.date().toISOString(), await caught(() => api.fail()), await caught(() => api.panic()),
			await caught(() => api.add({ x: 'a', y: 1 })), await caught(() => api.add())]);`, runtime.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `["v1","geo",3,7,[0,255],"2026-01-02T03:04:05.000Z","ENOENT none","ERR_HOST_PANIC the host function failed",` +
		`"ERR_ARGUMENTS argument 1: x: want a whole number","ERR_ARGUMENTS too few arguments, want 1"]`
	if string(res.Value) != want {
		t.Errorf("%s\nwant %s\n%s", res.Value, want, res.Stderr)
	}
	if len(res.Calls) != 8 || res.Calls[0].Name != "api.add" {
		t.Errorf("%+v", res.Calls)
	}
}

// testStrictFunction: calls whose arguments do not match the schema of a strict function do not reach the client.
func testStrictFunction(t *testing.T, c *client.Client) {
	var calls atomic.Int64
	f := runtime.Function{
		Schema: json.RawMessage(`{"prefixItems":[{"type":"string"}]}`),
		Call:   func(context.Context, json.RawMessage) (any, error) { calls.Add(1); return "called", nil },
	}
	strict := f
	strict.Strict = true
	sb := createIn(t, c, client.CreateOptions{Bindings: map[string]any{"any": f, "strict": strict}})
	res, err := sb.Run(soon(t), `
		const caught = f => { try { return f() } catch (e) { return e.code } };
		__return([any(1), strict('a'), caught(() => strict(1))])`, runtime.RunOptions{})
	if err != nil || string(res.Value) != `["called","called","ERR_ARGUMENTS"]` || calls.Load() != 2 {
		t.Errorf("%v, %+v, %d calls", err, res, calls.Load())
	}
}

// testAsyncFunctions: calls of functions that return promises overlap.
func testAsyncFunctions(t *testing.T, c *client.Client) {
	release := make(chan struct{})
	sb := createIn(t, c, client.CreateOptions{Bindings: map[string]any{
		"callBinding": runtime.Function{Async: true, Call: func(ctx context.Context, args json.RawMessage) (any, error) {
			if string(args) == `["release"]` {
				close(release)
			}
			select {
			case <-release:
				return nil, &runtime.CallError{Code: "ENOENT", Message: "none"}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}},
	}})
	res, err := sb.Run(soon(t), `
		const waiting = callBinding('wait');
		await new Promise(done => setTimeout(done, 1));
		const all = await Promise.allSettled([waiting, callBinding('release')]);
		__return(all.map(r => r.reason instanceof Error && r.reason.code + ' ' + r.reason.message))`, runtime.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := `["ENOENT none","ENOENT none"]`; string(res.Value) != want {
		t.Errorf("%s %s, want %s", res.Value, res.Stderr, want)
	}
}

// testFunctionsOfSnippets: a snippet and a context have separate functions.
func testFunctionsOfSnippets(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{})
	double := map[string]any{"double": runtime.NewFunction("doubles", func(_ context.Context, n int) (int, error) { return 2 * n, nil })}
	e, err := sb.Evaluate(soon(t), `double(double(1))`, runtime.EvaluateOptions{Globals: double})
	if err != nil || string(e.Value) != "4" || len(e.Calls) != 2 {
		t.Errorf("%v %+v", err, e)
	}
	e, err = sb.Evaluate(soon(t), `double(double(1))`, runtime.EvaluateOptions{Globals: double, MaxCalls: 1})
	if err != nil || e.Error == nil || e.Error.Code != runtime.CodeManyCalls {
		t.Errorf("%v %+v", err, e)
	}
	k, err := sb.NewContext(soon(t), runtime.ContextOptions{Globals: double})
	if err != nil {
		t.Fatal(err)
	}
	e, err = k.Evaluate(soon(t), `double(5)`, runtime.EvaluateOptions{})
	if err != nil || string(e.Value) != "10" {
		t.Errorf("%v %+v", err, e)
	}
}

// testManyCalls: calls from several runs at the same time all get their own answers.
func testManyCalls(t *testing.T, c *client.Client) {
	var calls atomic.Int64
	sb := createIn(t, c, client.CreateOptions{Bindings: map[string]any{
		"echo": func(_ context.Context, args json.RawMessage) (any, error) { calls.Add(1); return args, nil },
	}})
	failed := make(chan error, 4)
	for range 4 {
		go func() {
			res, err := sb.Run(soon(t), `
				const all = await Promise.all(Array.from({ length: 200 }, (_, i) => echo.async(i, '<' + 'x'.repeat(i))));
				__return(all.every((a, i) => a[0] === i && a[1].length === i + 1))`, runtime.RunOptions{})
			if err == nil && string(res.Value) != "true" {
				err = errors.New(string(res.Stderr))
			}
			failed <- err
		}()
	}
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if calls.Load() != 800 {
		t.Errorf("%d calls", calls.Load())
	}
}

// testCallIsCanceled: the context of a function ends with the call's time limit, and with the run.
func testCallIsCanceled(t *testing.T, c *client.Client) {
	started, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	sb := createIn(t, c, client.CreateOptions{
		Calls: runtime.CallLimits{Timeout: 300 * time.Millisecond},
		Bindings: map[string]any{"wait": runtime.NewFunction0("waits", func(ctx context.Context) (int, error) {
			started <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
			return 0, ctx.Err()
		})},
	})
	res, err := sb.Run(soon(t), `try { wait() } catch (e) { __return(e.code) }`, runtime.RunOptions{})
	if err != nil || string(res.Value) != `"`+runtime.CodeTimeout+`"` {
		t.Errorf("%v %s", err, res.Value)
	}
	<-ended
	<-started
	ctx, cancel := context.WithCancel(soon(t))
	go func() { <-started; cancel() }()
	code := `try { wait() } catch {}; setInterval(() => {}, 1000)` // a busy machine may cancel it after the call's time limit
	if _, err := sb.Run(ctx, code, runtime.RunOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	<-ended
}

// testReentrantFunction: a function may use the session that calls it.
func testReentrantFunction(t *testing.T, c *client.Client) {
	var inner *client.Sandbox
	sb := createIn(t, c, client.CreateOptions{Bindings: map[string]any{
		"run": runtime.NewFunction("runs code", func(ctx context.Context, code string) (json.RawMessage, error) {
			res, err := inner.Run(ctx, code, runtime.RunOptions{})
			if err != nil {
				return nil, err
			}
			return res.Value, nil
		}),
	}})
	inner = sb
	res, err := sb.Run(soon(t), `__return(run("__return(run('__return(1)') + 1)") + 1)`, runtime.RunOptions{})
	if err != nil || string(res.Value) != "3" {
		t.Errorf("%v %s %s", err, res.Value, res.Stderr)
	}
}

func testFunctionLimits(t *testing.T, c *client.Client) {
	sb := createIn(t, c, client.CreateOptions{
		Calls: runtime.CallLimits{Arguments: 100, Result: 100},
		Bindings: map[string]any{"big": runtime.NewFunction("returns text", func(_ context.Context, n int) (string, error) {
			return strings.Repeat("x", n), nil
		})},
	})
	res, err := sb.Run(soon(t), `try { big(1000) } catch (e) { __return(e.code) }`, runtime.RunOptions{})
	if err != nil || string(res.Value) != `"`+runtime.CodeResult+`"` {
		t.Errorf("%v %s %s", err, res.Value, res.Stderr)
	}
	if _, err := c.Create(soon(t), client.CreateOptions{Detached: true, Bindings: map[string]any{"f": runtime.NewFunction0("", func(context.Context) (int, error) { return 0, nil })}}); !isCode(err, "invalid") {
		t.Errorf("a detached sandbox with functions: %v", err)
	}
}
