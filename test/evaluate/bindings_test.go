package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// user is the argument and result of the typed functions in these tests.
type user struct {
	ID   int       `json:"id" jsonschema:"the number of the user"`
	Name string    `json:"name,omitempty"`
	Born time.Time `json:"born,omitzero"`
	Icon []byte    `json:"icon,omitempty"`
}

var errNoUser = &runtime.CallError{Code: "ENOENT", Message: "there is no such user"}

func bindings() map[string]any {
	echo := func(_ context.Context, args json.RawMessage) (any, error) { return args, nil }
	return map[string]any{
		"echo":   echo,
		"answer": 42,
		"data":   map[string]any{"list": []any{1, "ü", nil, true}, "bytes": []byte{0, 255}, "at": time.UnixMilli(1234567890123)},
		"api": map[string]any{
			"version": "1",
			"users": map[string]any{
				"get": runtime.NewFunction("gets a user", func(_ context.Context, id int) (user, error) {
					if id < 0 {
						return user{}, errNoUser
					}
					return user{ID: id, Name: fmt.Sprintf("user %d", id), Born: time.UnixMilli(0), Icon: []byte("png")}, nil
				}),
				"put": runtime.NewFunction("puts a user", func(_ context.Context, u user) (string, error) {
					return fmt.Sprintf("%d %s %s %d", u.ID, u.Name, u.Icon, u.Born.UnixMilli()), nil
				}),
			},
			"now": runtime.NewFunction0("the time", func(context.Context) (time.Time, error) { return time.UnixMilli(5), nil }),
			"add": runtime.NewFunction2("adds", func(_ context.Context, a, b float64) (float64, error) { return a + b, nil }),
		},
		"fail":  func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("it failed") },
		"panic": func(context.Context, json.RawMessage) (any, error) { panic("a secret of the host's") },
		"odd":   func(context.Context, json.RawMessage) (any, error) { return make(chan int), nil },
		"large": func(_ context.Context, args json.RawMessage) (any, error) {
			var n []int
			if err := json.Unmarshal(args, &n); err != nil {
				return nil, err
			}
			return strings.Repeat("x", n[0]), nil
		},
	}
}

// Programs see the functions and data of their host.
func TestBindings(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	for _, tc := range []struct{ name, code, want string }{
		{"data", `[answer, data.list, data.bytes instanceof Uint8Array && [...data.bytes], data.at instanceof Date && +data.at, api.version]`, `[42,[1,"ü",null,true],[0,255],1234567890123,"1"]`},
		{"a call", `echo(1, 'ü', { a: [null] })`, `[1,"ü",{"a":[null]}]`},
		{"no arguments", `echo()`, `[]`},
		{"undefined, bytes and dates", `echo(undefined, new Uint8Array([1, 2]), Buffer.from('x'), new Date(0), { deep: new Uint16Array([1]).buffer })`, `[null,"AQI=","eA==","1970-01-01T00:00:00.000Z",{"deep":"AQA="}]`},
		{"typed", `const u = api.users.get(7); [u.id, u.name, u.born instanceof Date && +u.born, u.icon instanceof Uint8Array && String.fromCharCode(...u.icon)]`, `[7,"user 7",0,"png"]`},
		{"typed with an object", `api.users.put({ id: 3, name: 'n', icon: Buffer.from('i'), born: new Date(9) })`, `"3 n i 9"`},
		{"none and two arguments", `[+api.now(), api.add(1, 2.5)]`, `[5,3.5]`},
		{"await", `[await echo(1), await Promise.all([echo(2), echo(3)])]`, `[[1],[[2],[3]]]`},
		{"async", `await Promise.all(Array.from({ length: 1000 }, (_, i) => echo.async(i))).then(list => list.every(([n], i) => n === i))`, `true`},
		{"synchronous ones amid asynchronous ones", `const later = [echo.async(1), echo.async(2)]; const now = echo(3); [now, await Promise.all(later), echo(4), await echo.async(5)]`, `[[3],[[1],[2]],[4],[5]]`},
		{"from callbacks", `await new Promise(done => setTimeout(() => echo.async(1).then(r => done([r, echo(2)]))))`, `[[1],[2]]`},
		{"by name", `[callBinding('echo', 1), callBinding('api.users.get', 1).id, await callBinding.async('echo', 2)]`, `[[1],1,[2]]`},
		{"names", `[echo.name, api.users.get.name, echo.async.name]`, `["echo","get","echo.async"]`},
		{"the program ends with calls under way", `echo.async(1); 5`, `5`},
		{"a large answer", `large(3000000).length`, `3000000`},
		{"large answers at once", `(await Promise.all(Array.from({ length: 40 }, () => large.async(1000000)))).every(s => s.length === 1000000)`, `true`},
		{"large arguments", `echo('x'.repeat(1000000))[0].length`, `1000000`},
		{"large arguments at once", `(await Promise.all(Array.from({ length: 100 }, () => echo.async('x'.repeat(500000))))).every(([s]) => s.length === 500000)`, `true`},
	} {
		lines := strings.Split(tc.code, "; ")
		lines[len(lines)-1] = "__return(" + lines[len(lines)-1] + ")"
		code := strings.Join(lines, "; ")
		if strings.Contains(tc.code, "=> {") || strings.Contains(tc.code, "Array.from") {
			code = "__return(" + tc.code + ")"
		}
		res := harness.Run(t, rt, code, runtime.RunOptions{})
		if string(res.Value) != tc.want || res.ExitCode != 0 {
			t.Errorf("%s: %s, exit code %d %s %s; want %s", tc.name, res.Value, res.ExitCode, res.Cause, res.Stderr, tc.want)
		}
	}
}

// TestAsyncFunctions: calls of an asynchronous function overlap, and the guest continues meanwhile.
func TestAsyncFunctions(t *testing.T) {
	release := make(chan struct{})
	meet := runtime.Function{Async: true, Call: func(ctx context.Context, args json.RawMessage) (any, error) {
		// Calls may start in any order.
		if string(args) == `["first"]` {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return args, nil
	}}
	rt := harness.Create(t, runtime.Options{Bindings: map[string]any{
		"meet":        meet,
		"release":     runtime.NewFunction0("lets the first call return", func(context.Context) (any, error) { close(release); return nil, nil }),
		"callBinding": runtime.Function{Async: true, Call: func(context.Context, json.RawMessage) (any, error) { return nil, errNoUser }},
	}})
	res := harness.Run(t, rt, `
		const pending = meet('first');
		const second = await meet('second'); // returns while the first is pending
		await new Promise(done => setTimeout(done, 1));
		release();
		const failed = await callBinding('get-user', { id: 1 }).catch(err => [err instanceof Error, err.message, err.code]);
		__return([pending instanceof Promise, second, await pending, failed])`, runtime.RunOptions{})
	const want = `[true,["second"],["first"],[true,"there is no such user","ENOENT"]]`
	if string(res.Value) != want {
		t.Errorf("%s %s, want %s", res.Value, res.Stderr, want)
	}
}

// A failed call throws where it is made, and names the mistake.
func TestBindingErrors(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings(), Calls: runtime.CallLimits{Arguments: 1000, Result: 2000}})
	for _, tc := range []struct{ name, call, want string }{
		{"an error", `fail()`, `["Error","it failed",null]`},
		{"an error with a code", `api.users.get(-1)`, `["Error","there is no such user","ENOENT"]`},
		{"a panic", `panic()`, `["Error","the host function failed","ERR_HOST_PANIC"]`},
		{"what JSON can't say", `odd()`, `["Error","the host function's result cannot be encoded as JSON","ERR_RESULT"]`},
		{"a large result", `large(2000)`, `["Error","the result has 2002 bytes of JSON, the limit is 2000","ERR_RESULT"]`},
		{"large arguments", `echo('x'.repeat(1000))`, `["RangeError","the arguments have 1004 bytes of JSON, the limit is 1000",null]`},
		{"arguments that JSON has not", `echo(1n)`, `["TypeError","argument 1: a BigInt cannot be encoded as JSON; make it a string or a number",null]`},
		{"the wrong type", `api.users.get('7')`, `ERR_ARGUMENTS`},
		{"too many", `api.users.get(7, 8)`, `ERR_ARGUMENTS`},
		{"too few", `api.users.get()`, `ERR_ARGUMENTS`},
		{"more fields", `api.users.put({ id: 1, more: 2 })`, `ERR_ARGUMENTS`},
		{"no such function", `callBinding('nosuch')`, `["TypeError","there is no host function \"nosuch\"","ERR_NO_FUNCTION"]`},
	} {
		for _, call := range []string{tc.call, "await " + strings.Replace(tc.call, "(", ".async(", 1)} {
			res := harness.Run(t, rt, "function caller() { return 1 }\ntry { "+call+"; __return('none') } catch (err) { __return([err.name, err.message, err.code ?? null]) }", runtime.RunOptions{})
			if !strings.Contains(string(res.Value), tc.want) {
				t.Errorf("%s: %s: %s %s, want %s", tc.name, call, res.Value, res.Stderr, tc.want)
			}
		}
	}
	for code, want := range map[string]string{
		"\necho(1n)":             "number\n    at file:///run/gaol/N/main.mjs:2:1\n",
		"\nawait echo.async(1n)": "number\n    at file:///run/gaol/N/main.mjs:2:12\n",
		"\necho({ toJSON() { throw new Error('own') } })": "Error: own\n    at Object.toJSON (file:///run/gaol/N/main.mjs:2:25)\n",
	} {
		if res := harness.Run(t, rt, code, runtime.RunOptions{}); !strings.Contains(harness.UnnumberPrograms(res.Stderr), want) {
			t.Errorf("%s: %s", code, res.Stderr)
		}
	}
	if res := harness.Run(t, rt, "odd()", runtime.RunOptions{}); len(res.Calls) != 1 || !strings.Contains(res.Calls[0].Error, "chan int") {
		t.Errorf("the call lists no reason: %+v", res.Calls)
	}
	res := harness.Run(t, rt, "\nfail()", runtime.RunOptions{})
	if want := "Error: it failed\n    at file:///run/gaol/N/main.mjs:2:1\n"; res.ExitCode != 1 || !strings.Contains(harness.UnnumberPrograms(res.Stderr), want) {
		t.Errorf("uncaught: exit code %d, %s", res.ExitCode, res.Stderr)
	}
}

// Calls are counted and listed. Their number, their time and how many run at once are
// limited.
func TestBindingLimits(t *testing.T) {
	var now, most atomic.Int32
	rt := harness.Create(t, runtime.Options{
		Bindings: map[string]any{
			"slow": func(ctx context.Context, _ json.RawMessage) (any, error) {
				n := now.Add(1)
				defer now.Add(-1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(5 * time.Millisecond)
				return nil, nil
			},
		},
		Calls: runtime.CallLimits{Calls: 60, Concurrent: 3}, // 60 take 100 ms at least
	})
	res := harness.Run(t, rt, `
		const all = await Promise.allSettled(Array.from({ length: 70 }, () => slow.async('12')));
		__return([all.filter(r => r.status === 'fulfilled').length, all.find(r => r.status === 'rejected').reason.code])`, runtime.RunOptions{})
	if string(res.Value) != `[60,"ERR_TOO_MANY_CALLS"]` || most.Load() != 3 {
		t.Errorf("%s %s, %d at once, want 3", res.Value, res.Stderr, most.Load())
	}
	if len(res.Calls) != 70 || res.Truncated.Calls {
		t.Fatalf("%d calls are listed", len(res.Calls))
	}
	first, last := res.Calls[0], res.Calls[69]
	if first.Name != "slow" || first.Duration < 5*time.Millisecond || first.Arguments != len(`["12"]`) || first.Result != len("null") || first.Error != "" || last.Error == "" {
		t.Errorf("the first is %+v, the last %+v", first, last)
	}

	started := make(chan struct{}, 1)
	hang := func(ctx context.Context, _ json.RawMessage) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	short := harness.Create(t, runtime.Options{Bindings: map[string]any{"hang": hang}, Calls: runtime.CallLimits{Timeout: 500 * time.Millisecond}})
	res = harness.Run(t, short, `try { hang() } catch (err) { __return(err.code) }`, runtime.RunOptions{})
	if <-started; string(res.Value) != `"ERR_CALL_TIMEOUT"` {
		t.Errorf("a function that takes too long: %s %s", res.Value, res.Stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	long := harness.Create(t, runtime.Options{Bindings: map[string]any{"hang": hang}})
	res, err := long.Run(ctx, `hang()`, runtime.RunOptions{})
	if !errors.Is(err, context.Canceled) || res.Cause != runtime.CauseCanceled || len(res.Calls) != 1 || res.Calls[0].Error == "" {
		t.Errorf("a run that ends during a call: %+v, %v", res, err)
	}
}

// Exec gets the functions too, but no __return. So do programs of Spawn. A Worker has none.
// Without Bindings, a program does not even have the descriptor.
func TestBindingsElsewhere(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Bindings: bindings()})
	res, err := rt.Exec(t.Context(), `console.log(typeof __return, echo(1))`, runtime.RunOptions{})
	if err != nil || string(res.Stdout) != "undefined [ 1 ]\n" || len(res.Calls) != 1 {
		t.Errorf("Exec: %v %s %s", err, res.Stdout, res.Stderr)
	}
	p, err := rt.SpawnCode(t.Context(), `__return(echo(2))`, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.Wait(t.Context()); err != nil || string(res.Value) != `[2]` {
		t.Errorf("SpawnCode: %v %+v", err, res)
	}
	res = harness.Run(t, rt, `
		import { Worker } from 'node:worker_threads';
		new Worker('require("worker_threads").parentPort.postMessage(typeof echo)', { eval: true }).on('message', __return)`, runtime.RunOptions{})
	if string(res.Value) != `"undefined"` {
		t.Errorf("a worker: %s %s", res.Value, res.Stderr)
	}
	bare := harness.Create(t, runtime.Options{})
	const look = `import { readlinkSync } from 'node:fs'; const d = n => { try { return readlinkSync('/proc/self/fd/' + n).slice(0, 4) } catch { return '' } };
		__return([typeof callBinding, d(3), d(5)])`
	if res := harness.Run(t, bare, look, runtime.RunOptions{}); !strings.HasPrefix(string(res.Value), `["undefined","pipe"`) || strings.Count(string(res.Value), "pipe") != 1 {
		t.Errorf("without bindings: %s %s", res.Value, res.Stderr)
	}
}

// Create rejects values that have no JSON, by name.
func TestBindingsRefused(t *testing.T) {
	f := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
	for name, tc := range map[string]struct {
		given map[string]any
		want  string
	}{
		"a bad name":       {map[string]any{"a-b": f}, `"a-b" is not a valid JavaScript identifier`},
		"a bad inner name": {map[string]any{"a": map[string]any{"b c": f}}, `"a.b c" is not a valid JavaScript identifier`},
		"__proto__":        {map[string]any{"a": map[string]any{"__proto__": f}}, `"a.__proto__" can't be given`},
		"globalThis":       {map[string]any{"globalThis": 1}, `"globalThis" can't be given`},
		"a wrong function": {map[string]any{"f": func() {}}, "a func() is not a host function: make one with NewFunction"},
		"no function":      {map[string]any{"f": runtime.Function{}}, "a function without Call"},
		"no JSON":          {map[string]any{"c": make(chan int)}, "chan int"},
	} {
		_, err := runtime.Create(t.Context(), harness.Options(runtime.Options{Bindings: tc.given}))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	_, err := runtime.Create(t.Context(), harness.Options(runtime.Options{Calls: runtime.CallLimits{Concurrent: 5000}}))
	if err == nil {
		t.Error("5,000 bindings were accepted")
	}
}

// A typed function describes itself by a JSON Schema for prompts.
func TestFunctionSchema(t *testing.T) {
	f := bindings()["api"].(map[string]any)["users"].(map[string]any)["put"].(runtime.Function)
	var schema struct {
		Type        string
		PrefixItems []struct {
			Properties map[string]struct{ Description string }
			Required   []string
		}
	}
	if err := json.Unmarshal(f.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	one := schema.PrefixItems[0]
	if f.Description != "puts a user" || schema.Type != "array" || one.Properties["id"].Description != "the number of the user" || !cmp.Equal(one.Required, []string{"id"}) {
		t.Errorf("%s: %s", f.Description, f.Schema)
	}
}
