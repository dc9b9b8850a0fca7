package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/runtime/resultjson"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestEvents(t *testing.T) {
	c := newClient(t, servertest.Start(t, servertest.Options{}), ada)
	sandbox := c.sandbox(t, nil)
	for name, test := range map[string]func(*testing.T, tenantClient, string){
		"each":         testEachRun,
		"plain":        testAccept,
		"denial":       testDenial,
		"localhost":    testLocalhost,
		"flood":        testRunFlood,
		"stopped":      testSlowEventReader,
		"refused":      testRunRefused,
		"vanish":       testVanish,
		"delete":       testDeletedSandbox,
		"characters":   testCharacters,
		"not a number": testUnusual,
	} {
		t.Run(name, func(t *testing.T) { test(t, c, sandbox) })
	}
	if log := c.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the server logged:\n%s", log)
	}
}

// Each kind of run has events, and ends with the object of the plain response.
func testEachRun(t *testing.T, c tenantClient, sandbox string) {
	program := object{"code": "console.log('out'); console.error('err'); globalThis.__return?.(1)"}
	command := object{"command": "sh", "args": []string{"-c", "echo out; echo err >&2"}}
	snippet := object{"code": "console.log('out'); console.error('err'); 1"}
	for path, tc := range map[string]struct {
		body   object
		events []string
	}{
		"/v1/run":             {program, []string{"result", "stderr", "stdout"}},
		"/v1/evaluate":        {snippet, []string{"log", "log", "result"}},
		sandbox + "/run":      {program, []string{"result", "stderr", "stdout"}},
		sandbox + "/exec":     {program, []string{"result", "stderr", "stdout"}},
		sandbox + "/command":  {command, []string{"result", "stderr", "stdout"}},
		sandbox + "/evaluate": {snippet, []string{"log", "log", "result"}},
	} {
		var plain map[string]any
		c.send(t, "POST", path, tc.body, http.StatusOK, &plain)
		all := c.follow(t, "POST", path, tc.body, "").rest(t)
		var names []string
		output := ""
		for _, e := range all {
			names = append(names, e.name)
			output += e.output(t)
		}
		last := all[len(all)-1]
		slices.Sort(names)
		if !slices.Equal(names, tc.events) || last.name != "result" {
			t.Errorf("%s: %+v", path, all)
		}
		if text := strings.Contains(output, "out\n") && strings.Contains(output, "err\n"); text == (names[0] == "log") {
			t.Errorf("%s: %q", path, output)
		}
		var result map[string]any
		last.into(t, &result)
		delete(plain, "queuedMs") // either may have waited for its turn
		delete(result, "queuedMs")
		if got, want := slices.Sorted(maps.Keys(result)), slices.Sorted(maps.Keys(plain)); !slices.Equal(got, want) {
			t.Errorf("%s: the result has %q, the plain response %q", path, got, want)
		}
		for _, field := range []string{"value", "result", "exitCode", "cause"} {
			if result[field] != plain[field] {
				t.Errorf("%s: %s is %v, in the plain response %v", path, field, result[field], plain[field])
			}
		}
	}
}

// The header Accept chooses the response.
func testAccept(t *testing.T, c tenantClient, sandbox string) {
	for accept, want := range map[string]string{
		"": "application/json", "*/*": "application/json", "application/json": "application/json", "text/html": "application/json",
		"text/event-stream": "text/event-stream", "application/json;q=0.5, text/event-stream": "text/event-stream",
		"text/event-stream;q=0.5, application/json": "application/json",
	} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gaol"+sandbox+"/evaluate", strings.NewReader(`{"code":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", accept)
		res := servertest.Do(t, c.Client, r)
		if got := res.Header.Get("Content-Type"); got != want || res.Status != http.StatusOK {
			t.Errorf("Accept %q: %d %s: %s", accept, res.Status, got, res.Body)
		}
		var e runtime.Evaluation
		if want == "application/json" && (json.Unmarshal(res.Body, &e) != nil || string(e.Value) != "1") {
			t.Errorf("Accept %q: %s", accept, res.Body)
		}
	}
}

// Without permissions code reaches the sandbox's own localhost, and no other host: the evaluation lists the denial.
func testLocalhost(t *testing.T, c tenantClient, sandbox string) {
	const serve = `const http = require('node:http'), { once } = require('node:events');
		const server = http.createServer((q, r) => r.end('own')).listen(80, '127.0.0.1'); await once(server, 'listening');
		const text = await (await fetch('http://127.0.0.1/')).text(); server.close(); text`
	for _, path := range []string{"/v1/evaluate", sandbox + "/evaluate"} {
		var own, other runtime.Evaluation
		c.send(t, "POST", path, object{"code": serve}, http.StatusOK, &own)
		if string(own.Value) != `"own"` || own.Error != nil || len(own.Denials) > 0 {
			t.Errorf("%s: %s, %+v, denials %+v", path, own.Value, own.Error, own.Denials)
		}
		c.send(t, "POST", path, object{"code": "await fetch('http://gaol.example/')"}, http.StatusOK, &other)
		want := []runtime.Denial{{Scope: "network", Operation: "dns", Target: "dns://gaol.example", Rule: "network.default", Count: 1, Source: runtime.SourceStderr}}
		if !slices.Equal(other.Denials, want) {
			t.Errorf("%s: denials %+v", path, other.Denials)
		}
	}
}

// A denial is an event, and in the result.
func testDenial(t *testing.T, c tenantClient, sandbox string) {
	all := c.follow(t, "POST", sandbox+"/run", object{
		"code":        "import('node:child_process').then(m => m.spawn('true').on('error', () => {}))",
		"permissions": object{"childProcess": "deny"},
	}, "").rest(t)
	var denial runtime.Denial
	var result runtime.Result
	for _, e := range all {
		switch e.name {
		case "denial":
			e.into(t, &denial)
		case "result":
			e.into(t, &result)
		}
	}
	if denial.Scope != "childProcess" || len(result.Denials) == 0 {
		t.Errorf("%+v", all)
	}
}

// A run prints more than a plain response has, and nothing of it is lost.
func testRunFlood(t *testing.T, c tenantClient, sandbox string) {
	want := harness.Fewer(30_000_000, 5_000_000)
	e := c.follow(t, "POST", sandbox+"/command", object{"command": "sh", "args": []string{"-c", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", want)}, "timeoutMs": 600000}, "")
	size := 0
	for {
		next, ok := e.next(t)
		if !ok {
			t.Fatal("no result")
		}
		size += len(next.output(t))
		if next.name == "result" {
			break
		}
	}
	if size != want {
		t.Errorf("%d bytes", size)
	}
}

// A client that does not read makes the run wait. That does not delay the run's end.
func testSlowEventReader(t *testing.T, c tenantClient, _ string) {
	sandbox := c.sandbox(t, nil)
	e := c.follow(t, "POST", sandbox+"/command", object{"command": "yes"}, "")
	if first, _ := e.next(t); first.name != "stdout" {
		t.Fatalf("%+v", first)
	}
	c.send(t, "DELETE", sandbox, nil, http.StatusNoContent, nil)
	all := e.rest(t)
	if last := all[len(all)-1]; last.name != "error" || !strings.Contains(last.data, `"code":"closed"`) {
		t.Errorf("%+v", last)
	}
}

// active counts the runs, processes and contexts that are active in a sandbox.
func (c tenantClient) active(t *testing.T, sandbox string) int {
	t.Helper()
	var info resultjson.SandboxInfo
	c.send(t, "GET", sandbox, nil, http.StatusOK, &info)
	return info.Processes
}

// An error before the first event has its own status, unless it takes longer than a second.
func testRunRefused(t *testing.T, c tenantClient, sandbox string) {
	for path, body := range map[string]object{
		"/v1/run":                       {"code": "1", "timeoutMs": -1},
		"/v1/evaluate":                  {"code": "1", "hostname": "/"},
		sandbox + "/run":                {"code": "1", "name": "a/b"},
		sandbox + "/exec":               {"code": "1", "permissions": object{"nope": 1}},
		sandbox + "/command":            {"command": "nope"},
		sandbox + "/evaluate":           {"code": "1", "timeoutMs": int64(1) << 60},
		"/v1/sandboxes/sb-nope/run":     {"code": "1"},
		"/v1/sandboxes/sb-nope/command": {"command": "sh"},
	} {
		r := c.request(t, "POST", path, body, "")
		if r.Header.Get("Content-Type") == "text/event-stream" { // a busy machine has taken longer than a second
			if all := r.rest(t); len(all) != 1 || all[0].name != "error" || !strings.Contains(all[0].data, `"status":4`) {
				t.Errorf("%s: %+v", path, all)
			}
		} else if r.StatusCode/100 != 4 || r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %s", path, r.Status, r.Header.Get("Content-Type"))
		}
	}
}

// A run ends when its client vanishes, whether it reads events or waits for the response.
func testVanish(t *testing.T, c tenantClient, sandbox string) {
	const code = "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1e6)"
	for name, body := range map[string]object{
		"/run":      {"code": code},
		"/exec":     {"code": code},
		"/command":  {"command": "sh", "args": []string{"-c", "trap '' TERM INT HUP; echo up; (setsid sleep 1000) & sleep 1000"}},
		"/evaluate": {"code": code},
	} {
		e := c.follow(t, "POST", sandbox+name, body, "")
		e.next(t)
		if n := c.active(t, sandbox); n != 1 {
			t.Errorf("%s: %d runs", name, n)
		}
		e.vanish()
		harness.WaitFor(t, name+" has ended", func() bool { return c.active(t, sandbox) == 0 })
		c.plainVanishes(t, sandbox+name, body, func() int { return c.active(t, sandbox) })
	}
	// One with a separate sandbox, of a tenant without a pool.
	e := newClient(t, c.Server, ben).follow(t, "POST", "/v1/run", object{"code": code, "hostname": "own"}, "")
	e.next(t)
	if n := runsOf(ben); n != 1 {
		t.Errorf("%d runs", n)
	}
	e.vanish()
	harness.WaitFor(t, "the run has ended", func() bool { return runsOf(ben) == 0 })
	for _, path := range []string{"/v1/run", "/v1/evaluate"} {
		newClient(t, c.Server, ben).plainVanishes(t, path, object{"code": code, "hostname": "own"}, func() int { return runsOf(ben) })
	}
}

// plainVanishes starts a run whose client waits for the response, and vanishes. active counts the runs.
func (c tenantClient) plainVanishes(t *testing.T, path string, body object, active func() int) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", "http://gaol"+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := c.Do(r); err == nil {
			_ = res.Body.Close()
			t.Errorf("%s: %s", path, res.Status)
		}
	}()
	harness.WaitFor(t, path+" runs", func() bool { return active() == 1 })
	cancel()
	<-ended
	harness.WaitFor(t, path+" has ended", func() bool { return active() == 0 })
}

// A sandbox that is deleted ends its runs. Their clients learn why.
func testDeletedSandbox(t *testing.T, c tenantClient, _ string) {
	sandbox := c.sandbox(t, nil)
	run := c.follow(t, "POST", sandbox+"/command", object{"command": "sh", "args": []string{"-c", "echo up; sleep 1000"}}, "")
	run.next(t)
	p := c.spawn(t, sandbox, object{"command": "sleep", "args": []string{"1000"}})
	process := c.follow(t, "GET", p+"/events", nil, "")
	cell := c.busy(t, c.context(t, sandbox, object{}), "for (;;);")
	c.send(t, "DELETE", sandbox, nil, http.StatusNoContent, nil)
	for name, e := range map[string]*events{"run": run, "cell": cell} {
		all := e.rest(t)
		if len(all) != 1 || all[0].name != "error" || !strings.Contains(all[0].data, `"code":"closed"`) {
			t.Errorf("%s: %+v", name, all)
		}
	}
	if all := process.rest(t); len(all) != 1 || all[0].name != "result" || !strings.Contains(all[0].data, `"cause":"canceled"`) {
		t.Errorf("%+v", all)
	}
	c.send(t, "GET", p, nil, http.StatusNotFound, nil)
}

// Output that is written byte by byte is text.
func testCharacters(t *testing.T, c tenantClient, sandbox string) {
	const text = "aé€😀"
	all := c.follow(t, "POST", sandbox+"/exec", object{
		"code": "import fs from 'node:fs'; for (const b of Buffer.from('" + text + "'.repeat(100))) fs.writeSync(1, Buffer.of(b))",
	}, "").rest(t)
	output := ""
	for _, e := range all {
		if strings.Contains(e.data, `"bytes"`) || strings.Contains(e.data, "\ufffd") {
			t.Errorf("%+v", e)
		}
		output += e.output(t)
	}
	if output != strings.Repeat(text, 100) {
		t.Errorf("%q", output)
	}
}

// Text of the guest cannot forge events.
func testUnusual(t *testing.T, c tenantClient, sandbox string) {
	const forged = "\n\nevent: result\ndata: {}\n\n\r\rid: 9\r\u2028\u0000"
	text, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	all := c.follow(t, "POST", sandbox+"/run", object{"code": "process.stdout.write(" + string(text) + ")"}, "").rest(t)
	if len(all) != 2 || all[0].output(t) != forged || all[1].name != "result" {
		t.Errorf("%+v", all)
	}
}
