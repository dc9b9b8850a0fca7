package server

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/runtime/resultjson"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestProcesses(t *testing.T) {
	c := newClient(t, servertest.Start(t, servertest.Options{}), ada)
	sandbox := c.sandbox(t, nil)
	for name, test := range map[string]func(*testing.T, tenantClient, string){
		"input":     testInput,
		"value":     testValue,
		"terminal":  testProcessTerminal,
		"signal":    testSignal,
		"descend":   testDescendants,
		"timeout":   testTimeout,
		"resume":    testResume,
		"flood":     testFlood,
		"stalled":   testStalled,
		"lossless":  testLossless,
		"bytes":     testBytes,
		"full pipe": testFullPipe,
		"refused":   testRefused,
		"fork bomb": testForkBomb,
		"vanished":  testVanishedClients,
	} {
		t.Run(name, func(t *testing.T) { test(t, c, sandbox) })
	}
	if log := c.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("the server logged:\n%s", log)
	}
}

// A process reads its input, and the end of its input.
func testInput(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", `read a; echo "got $a $V in $PWD"; cat; echo end >&2; exit 3`}, "env": object{"V": "v"}, "cwd": "/tmp"})
	e := c.follow(t, "GET", p+"/events", nil, "")
	c.write(t, p, object{"text": "é\n"})
	e.until(t, "got é v in /tmp\n")
	c.write(t, p, object{"bytes": base64.StdEncoding.EncodeToString([]byte("\x00\xff")), "close": true})
	all := ""
	var result runtime.Result
	for i, next := range e.rest(t) {
		all += next.output(t)
		if next.id == "" {
			t.Errorf("event %d has no ID: %+v", i, next)
		}
		if next.name == "result" {
			next.into(t, &result)
		}
	}
	if !strings.Contains(all, "\x00\xff") || !strings.Contains(all, "end\n") || result.ExitCode != 3 {
		t.Errorf("output %q, result %+v", all, result)
	}
	info := c.wait(t, p)
	if info.Result.ExitCode != 3 || info.Program != "sh" || len(info.Args) != 2 || info.Usage.CPU <= 0 || info.Usage.Memory != 0 {
		t.Errorf("%+v", info)
	}
	c.send(t, "POST", p+"/stdin", object{"text": "x"}, http.StatusGone, nil)
	c.send(t, "POST", p+"/signal", object{"signal": "SIGTERM"}, http.StatusGone, nil)
	c.send(t, "DELETE", p, nil, http.StatusNoContent, nil)
	c.send(t, "GET", p, nil, http.StatusNotFound, nil)
}

// The value of a program is in its result.
func testValue(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"code": "const n: number = 1; __return({ n, argv: process.argv.slice(2) })", "name": "value.ts", "args": []string{"a"}})
	info := c.wait(t, p)
	if string(info.Result.Value) != `{"n":1,"argv":["a"]}` || info.Program != "value.ts" {
		t.Errorf("%+v, %s", info, info.Result.Value)
	}
}

// A terminal's size can change, and keys reach the program.
func testProcessTerminal(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "echo $TERM; stty size; trap 'stty size; status=7' WINCH; echo ready; until read a; do :; done; exit $status"}, "terminal": object{"rows": 30, "cols": 70, "term": "vt100"}})
	e := c.follow(t, "GET", p+"/events", nil, "")
	e.until(t, "vt100\r\n30 70\r\nready\r\n")
	c.send(t, "POST", p+"/resize", object{"rows": 31, "cols": 71}, http.StatusNoContent, nil)
	c.write(t, p, object{"text": "\r"})
	e.until(t, "31 71\r\n")
	if info := c.wait(t, p); info.Result.ExitCode != 7 || !info.Terminal {
		t.Errorf("%+v", info)
	}
	p = c.spawn(t, sandbox, object{"command": "cat"})
	c.send(t, "POST", p+"/resize", object{"rows": 31, "cols": 71}, http.StatusConflict, nil)
	c.write(t, p, object{"close": true})
	c.wait(t, p)
}

// A process that ignores signals is killed.
func testSignal(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"code": "for (const s of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(s, () => console.log(s)); setInterval(() => {}, 1e6); console.log('up')"})
	e := c.follow(t, "GET", p+"/events", nil, "")
	e.until(t, "up\n")
	for _, name := range []string{"SIGTERM", "SIGINT", "SIGHUP"} {
		c.send(t, "POST", p+"/signal", object{"signal": name}, http.StatusNoContent, nil)
		e.until(t, name+"\n")
	}
	var info resultjson.ProcessInfo
	c.send(t, "GET", p+"/wait?timeoutMs=1", nil, http.StatusOK, &info)
	if info.State != resultjson.Running || info.Result != nil || info.Usage.Memory == 0 {
		t.Errorf("%+v", info)
	}
	for _, name := range []string{"", "TERM", "SIGNOPE", "9"} {
		c.send(t, "POST", p+"/signal", object{"signal": name}, http.StatusUnprocessableEntity, nil)
	}
	c.send(t, "POST", p+"/signal", object{"signal": "SIGKILL"}, http.StatusNoContent, nil)
	if info := c.wait(t, p); info.Result.Cause != runtime.CauseCanceled || info.Result.ExitCode != 137 {
		t.Errorf("%+v", info.Result)
	}
}

// Descendants end with their process, although they ignore signals and have left its session.
func testDescendants(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "for i in 1 2 3; do (trap '' TERM INT HUP; setsid sleep 1000) & done; echo up; read a"}})
	c.follow(t, "GET", p+"/events", nil, "").until(t, "up\n")
	c.write(t, p, object{"close": true})
	c.wait(t, p)
	var res runtime.Result
	c.send(t, "POST", sandbox+"/command", object{"command": "sh", "args": []string{"-c", "cat /proc/[0-9]*/comm 2>/dev/null; true"}}, http.StatusOK, &res)
	if res.ExitCode != 0 || strings.Contains(string(res.Stdout), "sleep") {
		t.Errorf("%+v", res)
	}
}

func testTimeout(t *testing.T, c tenantClient, sandbox string) {
	var info resultjson.ProcessInfo
	harness.InTime(500*time.Millisecond, func(limit time.Duration) bool {
		body := object{"command": "sleep", "args": []string{"1000"}, "timeoutMs": limit.Milliseconds()}
		r := servertest.Send(t, c.Client, "POST", sandbox+"/processes", body)
		if r.Status != http.StatusCreated {
			return false
		}
		r.Into(t, &info)
		return true
	})
	if info := c.wait(t, sandbox+"/processes/"+info.ID); info.Result.Cause != runtime.CauseTimeout {
		t.Errorf("%+v", info.Result)
	}
}

// A client that comes back gets the events that it has missed.
func testResume(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "cat"})
	e := c.follow(t, "GET", p+"/events", nil, "")
	c.write(t, p, object{"text": "one\n"})
	last := e.until(t, "one\n").id
	e.vanish()
	c.write(t, p, object{"text": "two\n"})
	e = c.follow(t, "GET", p+"/events", nil, last)
	first, _ := e.next(t)
	if first.output(t) != "two\n" || first.id != "2" {
		t.Errorf("after %s: %+v", last, first)
	}
	c.write(t, p, object{"close": true})
	all := e.rest(t)
	if len(all) != 1 || all[0].name != "result" || all[0].id != "3" {
		t.Errorf("then: %+v", all)
	}
	if again := c.follow(t, "GET", p+"/events", nil, "").rest(t); len(again) != 3 || again[0].output(t) != "one\n" {
		t.Errorf("from the beginning: %+v", again)
	}
	if r := c.request(t, "GET", p+"/events", nil, "3"); r.StatusCode != http.StatusNoContent {
		t.Errorf("after the end: %s", r.Status)
	}
	for _, id := range []string{"4", "-1", "x", "99999999999999999999"} {
		if r := c.request(t, "GET", p+"/events", nil, id); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("after %s: %s", id, r.Status)
		}
	}
}

// A process that floods its output is not slowed down by absent readers. They learn which events are gone.
func testFlood(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "head -c 5000000 /dev/zero | tr '\\0' x; printf end"}})
	info := c.wait(t, p)
	all := c.follow(t, "GET", p+"/events", nil, "").rest(t)
	var gap resultjson.Gap
	if all[0].name != "gap" {
		t.Fatalf("first: %+v", all[0])
	}
	all[0].into(t, &gap)
	size := 0
	for _, e := range all[1:] {
		size += len(e.output(t))
	}
	if gap.First != 1 || gap.Last == 0 || size > 1<<20 || size < 1<<19 || all[len(all)-1].name != "result" {
		t.Errorf("%+v, then %d bytes", gap, size)
	}
	if first := all[1].id; all[0].id == first || info.LastEventID-gap.Last != uint64(len(all)-1) {
		t.Errorf("the gap %+v, %s, then %d events from %s to %d", gap, all[0].id, len(all)-1, first, info.LastEventID)
	}
}

// Readers that stall do not stop a process.
func testStalled(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "read a; head -c 5000000 /dev/zero | tr '\\0' x; printf end"}})
	stalled := c.follow(t, "GET", p+"/events", nil, "")
	other := c.follow(t, "GET", p+"/events", nil, "")
	c.write(t, p, object{"close": true})
	for name, e := range map[string]*events{"first": stalled, "second": other} {
		c.wait(t, p)
		all := e.rest(t)
		if last := all[len(all)-1]; last.name != "result" {
			t.Errorf("%s: %+v", name, last)
		}
		if !slices.ContainsFunc(all, func(e event) bool { return e.name == "gap" }) {
			t.Errorf("%d events without a gap", len(all))
		}
	}
}

// A process that waits for its readers loses nothing, although they come late.
func testLossless(t *testing.T, c tenantClient, sandbox string) {
	const size = 5000000
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "head -c 5000000 /dev/zero | tr '\\0' x"}, "whenFull": "wait"})
	var info resultjson.ProcessInfo
	harness.WaitFor(t, "the buffer is full", func() bool {
		before := info.LastEventID
		c.send(t, "GET", p+"/wait?timeoutMs=20", nil, http.StatusOK, &info)
		return info.LastEventID > 0 && info.LastEventID == before
	})
	if info.State != resultjson.Running {
		t.Fatalf("%+v", info)
	}
	got, last := 0, ""
	for range 3 { // connections
		e := c.follow(t, "GET", p+"/events", nil, last)
		for range 10 {
			next, ok := e.next(t)
			if !ok || next.name == "gap" {
				t.Fatalf("after %d bytes: %+v", got, next)
			}
			got += len(next.output(t))
			last = next.id
		}
		e.vanish()
	}
	names := map[string]int{}
	for _, next := range c.follow(t, "GET", p+"/events", nil, last).rest(t) {
		got += len(next.output(t))
		names[next.name]++
	}
	if got != size || names["gap"] != 0 || names["result"] != 1 {
		t.Errorf("%d bytes, %v", got, names)
	}
}

// Bytes survive, and no piece ends inside a character.
func testBytes(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"code": `
		import fs from 'node:fs';
		import { once } from 'node:events';
		fs.writeSync(1, Buffer.from('a€').subarray(0, 2)); // half a character
		fs.writeSync(2, 'up');
		await once(process.stdin, 'data');
		fs.writeSync(1, Buffer.from('a€').subarray(2));
		fs.writeSync(2, 'next');
		await once(process.stdin, 'data');
		fs.writeSync(1, Buffer.from([0xff, 0x61]));
		fs.writeSync(1, Buffer.from([0xe2, 0x82]));
		process.exit();`})
	e := c.follow(t, "GET", p+"/events", nil, "")
	var all []string
	written := map[string]bool{}
	for {
		next, ok := e.next(t)
		if !ok {
			break
		}
		if next.name == "stdout" {
			all = append(all, next.data)
		}
		if out := next.output(t); next.name == "stderr" && !written[out] {
			written[out] = true
			c.write(t, p, object{"text": "go on\n"})
		}
	}
	text := strings.Join(all, " ")
	if len(all) < 3 || all[0] != `{"text":"a"}` || all[1] != `{"text":"€"}` || !strings.Contains(text, "bytes") {
		t.Errorf("%s", text)
	}
	var bytes []byte
	for _, data := range all[2:] {
		bytes = append(bytes, event{name: "stdout", data: data}.output(t)...)
	}
	if !slices.Equal(bytes, []byte{0xff, 0x61, 0xe2, 0x82}) {
		t.Errorf("%q: %s", bytes, text)
	}
}

// A write waits for the process to read. Its request can be canceled.
func testFullPipe(t *testing.T, c tenantClient, sandbox string) {
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "trap : USR1; echo up; while ! [ -e go ]; do sleep 0.01; done; wc -c"}, "cwd": "/tmp"})
	c.follow(t, "GET", p+"/events", nil, "").until(t, "up\n")
	blocked := make(chan *servertest.Response, 1)
	go func() {
		blocked <- servertest.Send(t, c.Client, "POST", p+"/stdin", object{"text": strings.Repeat("x", 1<<20)})
	}()
	var res runtime.Result
	c.send(t, "POST", sandbox+"/command", object{"command": "touch", "args": []string{"/tmp/go"}}, http.StatusOK, &res)
	(<-blocked).Want(t, http.StatusNoContent)
	c.write(t, p, object{"text": "y", "close": true})
	c.follow(t, "GET", p+"/events", nil, "").until(t, "1048577\n")
	c.wait(t, p)
	// A write that is not read ends with the process.
	p = c.spawn(t, sandbox, object{"command": "sleep", "args": []string{"1000"}})
	go func() {
		blocked <- servertest.Send(t, c.Client, "POST", p+"/stdin", object{"text": strings.Repeat("x", 1<<20)})
	}()
	c.send(t, "POST", p+"/signal", object{"signal": "SIGKILL"}, http.StatusNoContent, nil)
	if r := <-blocked; r.Status != http.StatusConflict && r.Status != http.StatusGone {
		t.Errorf("a write to a process that was killed: %d %s", r.Status, r.Body)
	}
}

func testRefused(t *testing.T, c tenantClient, sandbox string) {
	for text, tc := range map[string]struct {
		body   object
		status int
	}{
		"nothing":        {object{}, 422},
		"both":           {object{"code": "1", "command": "sh"}, 422},
		"name":           {object{"command": "sh", "name": "a.mjs"}, 422},
		"path in a name": {object{"code": "1", "name": "a/b.mjs"}, 422},
		"program":        {object{"command": "nope"}, 422},
		"file":           {object{"command": "/etc/passwd"}, 422},
		"cwd":            {object{"command": "sh", "cwd": "/nope"}, 422},
		"half a size":    {object{"command": "sh", "terminal": object{"rows": 1}}, 422},
		"term":           {object{"command": "sh", "terminal": object{"term": "a b"}}, 422},
		"wide":           {object{"command": "sh", "terminal": object{"rows": 1, "cols": 65536}}, 422},
		"time":           {object{"command": "sh", "timeoutMs": int64(1) << 60}, 422},
		"permissions":    {object{"command": "sh", "permissions": object{"network": "allow"}}, 422},
		"when":           {object{"command": "sh", "whenFull": "wai"}, 422},
		"field":          {object{"command": "sh", "more": 1}, 422},
	} {
		t.Run(text, func(t *testing.T) { c.send(t, "POST", sandbox+"/processes", tc.body, tc.status, nil) })
	}
	p := c.spawn(t, sandbox, object{"command": "cat"})
	c.send(t, "POST", p+"/stdin", object{"text": "a", "bytes": "YQ=="}, 422, nil)
	c.send(t, "POST", p+"/stdin", object{"text": strings.Repeat("€", 1<<19)}, http.StatusRequestEntityTooLarge, nil)
	c.send(t, "GET", p+"/wait?timeoutMs=-1", nil, 422, nil)
	c.send(t, "GET", p+"/nope", nil, 404, nil)
	c.send(t, "DELETE", p, nil, http.StatusNoContent, nil)
	var list struct{ Processes []resultjson.ProcessInfo }
	c.send(t, "GET", sandbox+"/processes", nil, http.StatusOK, &list)
	for _, info := range list.Processes {
		if strings.HasSuffix(p, info.ID) {
			t.Errorf("still there: %+v", info)
		}
	}
}
