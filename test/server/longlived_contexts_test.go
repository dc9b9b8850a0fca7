package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/runtime/resultjson"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestContexts(t *testing.T) {
	c := newClient(t, servertest.Start(t, servertest.Options{}), ada)
	sandbox := c.sandbox(t, nil)
	for name, test := range map[string]func(*testing.T, tenantClient, string){
		"cells":     testCells,
		"interrupt": testInterrupt,
		"vanish":    testCellVanishes,
		"timeout":   testCellTimeout,
		"ended":     testContextEnded,
		"events":    testCellEvents,
		"many":      testManyCells,
		"refused":   testContextRefused,
	} {
		t.Run(name, func(t *testing.T) { test(t, c, sandbox) })
	}
	if log := c.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the server logged:\n%s", log)
	}
}

// context creates a context and returns its path.
func (c tenantClient) context(t *testing.T, sandbox string, body object) string {
	t.Helper()
	var info resultjson.ContextInfo
	c.send(t, "POST", sandbox+"/contexts", body, http.StatusCreated, &info)
	if info.State != resultjson.Running {
		t.Errorf("created: %+v", info)
	}
	return sandbox + "/contexts/" + info.ID
}

// evaluate evaluates a cell.
func (c tenantClient) evaluate(t *testing.T, context, code string) (e runtime.Evaluation) {
	t.Helper()
	c.send(t, "POST", context+"/cells", object{"code": code}, http.StatusOK, &e)
	return e
}

// describe describes a context.
func (c tenantClient) describe(t *testing.T, context string) (info resultjson.ContextInfo) {
	t.Helper()
	c.send(t, "GET", context, nil, http.StatusOK, &info)
	return info
}

// Cells see the declarations of earlier ones, and the context's variables.
func testCells(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{"globals": object{"given": object{"a": 1}}, "env": object{"V": "v"}, "cwd": "/tmp", "lastValue": true})
	c.evaluate(t, ctx, "const x: number = given.a; function later() { return x + 1 }")
	e := c.evaluate(t, ctx, "console.log('hi'); [later(), process.env.V, process.cwd()]")
	if string(e.Value) != `[2,"v","/tmp"]` || len(e.Logs) != 1 || e.Error != nil {
		t.Errorf("%+v, %s", e, e.Value)
	}
	if e = c.evaluate(t, ctx, "_[0] + nope"); e.Error == nil || e.Error.Name != "ReferenceError" {
		t.Errorf("%+v", e)
	}
	var done resultjson.Completion
	c.send(t, "POST", ctx+"/complete", object{"line": "1 + lat"}, http.StatusOK, &done)
	if done.Prefix != "lat" || len(done.Names) != 1 || done.Names[0] != "later" {
		t.Errorf("%+v", done)
	}
	c.send(t, "POST", ctx+"/complete", object{"line": "("}, http.StatusOK, &done)
	var list struct{ Contexts []resultjson.ContextInfo }
	c.send(t, "GET", sandbox+"/contexts", nil, http.StatusOK, &list)
	if len(list.Contexts) == 0 {
		t.Error("no contexts")
	}
	c.send(t, "DELETE", ctx, nil, http.StatusNoContent, nil)
	c.send(t, "GET", ctx, nil, http.StatusNotFound, nil)
	c.send(t, "POST", ctx+"/cells", object{"code": "1"}, http.StatusNotFound, nil)
}

// busy starts a cell that does not end, and returns when it runs.
func (c tenantClient) busy(t *testing.T, context, code string) *events {
	t.Helper()
	e := c.follow(t, "POST", context+"/cells", object{"code": "console.log('up'); " + code}, "")
	if first, _ := e.next(t); first.name != "log" {
		t.Fatalf("%+v", first)
	}
	return e
}

// Interrupt ends a busy cell and waiting ones. The context survives.
func testInterrupt(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{})
	c.evaluate(t, ctx, "let kept = 1")
	e := c.busy(t, ctx, "for (;;);")
	waiting := make(chan *servertest.Response, 1)
	go func() { waiting <- servertest.Send(t, c.Client, "POST", ctx+"/cells", object{"code": "kept = 2"}) }()
	var n struct{ Cells int }
	harness.WaitFor(t, "two cells", func() bool { return c.describe(t, ctx).Cells == 2 })
	c.send(t, "POST", ctx+"/interrupt", nil, http.StatusOK, &n)
	if n.Cells != 2 {
		t.Errorf("%d cells", n.Cells)
	}
	all := e.rest(t)
	if len(all) != 1 || all[0].name != "result" {
		t.Fatalf("%+v", all)
	}
	for name, text := range map[string]string{"busy": all[0].data, "waiting": string((<-waiting).Body)} {
		var result runtime.Evaluation
		if err := json.Unmarshal([]byte(text), &result); err != nil || result.Error == nil || result.Error.Name != "CanceledError" {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if e := c.evaluate(t, ctx, "kept"); string(e.Value) != "1" {
		t.Errorf("%+v", e)
	}
	c.send(t, "POST", ctx+"/interrupt", nil, http.StatusOK, &n)
	if n.Cells != 0 {
		t.Errorf("%d cells of an idle context", n.Cells)
	}
}

// A cell ends when its client vanishes.
func testCellVanishes(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{})
	c.busy(t, ctx, "for (;;);").vanish()
	if e := c.evaluate(t, ctx, "1"); string(e.Value) != "1" {
		t.Errorf("%+v", e)
	}
	c.busy(t, ctx, "await new Promise(() => setInterval(() => {}, 1e6))").vanish()
	if e := c.evaluate(t, ctx, "2"); string(e.Value) != "2" {
		t.Errorf("%+v", e)
	}
}

func testCellTimeout(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{})
	var e runtime.Evaluation
	c.send(t, "POST", ctx+"/cells", object{"code": "for (;;);", "timeoutMs": 100}, http.StatusOK, &e)
	if e.Error == nil || e.Error.Name != "TimeoutError" {
		t.Errorf("%+v", e)
	}
}

// A context that has exited reports why, and evaluates nothing.
func testContextEnded(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{})
	if e := c.evaluate(t, ctx, "process.exit(3)"); e.Error == nil || e.Error.Name != "ExitError" {
		t.Errorf("%+v", e)
	}
	p := c.send(t, "POST", ctx+"/cells", object{"code": "1"}, http.StatusGone, nil)
	if info := c.describe(t, ctx); p.Code != "closed" || info.State != resultjson.Ended || !strings.Contains(info.Reason, "code 3") {
		t.Errorf("%+v, %+v", p, info)
	}
	ctx = c.context(t, sandbox, object{"idleTimeoutMs": 1})
	harness.WaitFor(t, "the idle context has ended", func() bool { return c.describe(t, ctx).State == resultjson.Ended })
	c.send(t, "DELETE", ctx, nil, http.StatusNoContent, nil)
}

// The lines of a cell are events.
func testCellEvents(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{})
	all := c.follow(t, "POST", ctx+"/cells", object{"code": "console.log(1); console.error(2); 'value'"}, "").rest(t)
	if len(all) != 3 || all[0].name != "log" || !strings.Contains(all[1].data, `"text":"2"`) || all[2].name != "result" || !strings.Contains(all[2].data, `"value":"value"`) {
		t.Errorf("%+v", all)
	}
	if r := c.request(t, "POST", ctx+"/cells", object{"code": "1", "timeoutMs": int64(1) << 60}, ""); r.StatusCode != 422 || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s", r.Status)
	}
}

// Cells that wait are bounded.
func testManyCells(t *testing.T, c tenantClient, sandbox string) {
	ctx := c.context(t, sandbox, object{})
	e := c.busy(t, ctx, "for (;;);")
	done := make(chan *servertest.Response, 20)
	for range cap(done) {
		go func() { done <- servertest.Send(t, c.Client, "POST", ctx+"/cells", object{"code": "1"}) }()
	}
	for range cap(done) - 15 { // fifteen wait beside the busy one
		r := <-done
		if p := r.Want(t, http.StatusTooManyRequests); p.Code != "quota" || r.Header.Get("Retry-After") == "" {
			t.Errorf("%+v", r)
		}
	}
	e.vanish()
	for range 15 {
		(<-done).Want(t, http.StatusOK)
	}
}

func testContextRefused(t *testing.T, c tenantClient, sandbox string) {
	for name, body := range map[string]object{
		"variable":    {"globals": object{"a b": 1}},
		"cwd":         {"cwd": "/nope"},
		"permissions": {"permissions": object{"network": "allow"}},
		"time":        {"idleTimeoutMs": int64(1) << 60},
		"negative":    {"idleTimeoutMs": -1},
	} {
		t.Run(name, func(t *testing.T) { c.send(t, "POST", sandbox+"/contexts", body, 422, nil) })
	}
	ctx := c.context(t, sandbox, object{})
	c.send(t, "POST", ctx+"/cells", object{"code": "1", "maxLogs": 10000, "maxLogLength": 100000}, 422, nil)
	c.send(t, "POST", ctx+"/cells", object{"code": "1", "globals": object{"a b": 1}}, 422, nil)
	c.send(t, "POST", ctx+"/cells", object{"code": "1", "env": object{}}, 422, nil)
}
