package server

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func testInfo(t *testing.T, s *servertest.Server) {
	res := servertest.Send(t, s.Client(t, snippetUser), http.MethodGet, path, nil)
	res.Want(t, http.StatusOK)
	const want = `{"adapters":["none"],"adapter":"none","permissions":["strict","default"],"anonymous":true,` +
		`"maxBytes":200000,"maxFiles":10,"timeoutMs":{"default":5000,"min":100,"max":10000}}`
	if got := strings.TrimSpace(string(res.Body)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The status of every result is 200, also that of a snippet that fails or breaks a rule for its files.
func testResults(t *testing.T, s *servertest.Server) {
	o := run(t, s, snippetUser, object{"source": "export const n: number = 6 * 7; console.log('hi'); console.error('oh')"})
	if !slices.Equal(o.Logs, []string{"[log] hi", "[error] oh"}) || o.Facts["n"] != 42.0 || len(o.Errors) != 0 || o.TimedOut || o.DurationMs <= 0 || o.Derived == nil {
		t.Errorf("%+v", o)
	}
	o = run(t, s, snippetUser, object{"files": []object{file("src/main.ts", "console.log(1); throw new TypeError('no')")}})
	if !slices.Equal(o.Logs, []string{"[log] 1"}) || len(o.Errors) != 1 || !strings.Contains(o.Errors[0], "TypeError: no") {
		t.Errorf("%+v", o)
	}
	o = run(t, s, snippetUser, object{"source": "console.log(1)\nlet x: = 3"})
	if len(o.Errors) != 1 || !strings.HasPrefix(o.Errors[0], "src/main.ts:2:8 — ") || len(o.Logs) != 0 {
		t.Errorf("%+v", o)
	}
	o = run(t, s, snippetUser, object{"source": forever, "timeoutMs": 1})
	if !o.TimedOut || !slices.Contains(o.Errors, "wall-clock budget of 100ms elapsed") {
		t.Errorf("%+v", o)
	}
	for name, body := range map[string]any{
		"empty source":     object{"source": ""},
		"no files":         object{"files": []object{}},
		"many files":       object{"files": slices.Repeat([]object{file("src/main.ts", "1")}, 11)},
		"no entry":         object{"files": []object{file("src/other.ts", "1")}},
		"path":             object{"files": []object{file("src/main.ts", "1"), file("../x.ts", "1")}},
		"too large":        object{"source": strings.Repeat("/", 200_001)},
		"longest in bytes": object{"source": strings.Repeat("\x00", 200_001)}, // six bytes each in JSON
	} {
		if o := run(t, s, snippetUser, body); len(o.Errors) != 1 || o.Errors[0] == "" || o.DurationMs != 0 {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// The presets are enforced by the sandbox.
func testPermissions(t *testing.T, s *servertest.Server) {
	const attempts = `
		import { writeFileSync, readFileSync } from 'node:fs'
		import { execFileSync } from 'node:child_process'
		const tries = { write: () => writeFileSync('/tmp/x', ''), exec: () => execFileSync('/bin/true'), read: () => readFileSync('/etc/passwd') }
		export const done = Object.entries(tries).filter(([, f]) => { try { f(); return true } catch { return false } }).map(([name]) => name)
		export const net = await fetch('http://192.0.2.1/').then(() => true, () => false)`
	for preset, want := range map[string][]any{"": {"write", "exec", "read"}, "default": {"write", "exec", "read"}, "strict": {"read"}} {
		body := object{"source": attempts}
		if preset != "" {
			body["permissions"] = preset
		}
		o := run(t, s, snippetUser, body)
		if got, _ := o.Facts["done"].([]any); !slices.Equal(got, want) || o.Facts["net"] != false {
			t.Errorf("%q: %+v, want %v", preset, o, want)
		}
	}
}

// The events of a stream are the lines, as they arrive, and then the result.
func testStream(t *testing.T, s *servertest.Server) {
	es := follow(t, s, snippetUser, path, object{"source": "console.log('a'); console.warn('<b>\\n'); export const x = 1; let y: string = ; ", "timeoutMs": 10_000})
	e := es.next()
	var broken struct{ Problems []object }
	if err := json.Unmarshal([]byte(e.data), &broken); err != nil || e.name != "result" || len(broken.Problems) != 1 || broken.Problems[0]["line"] != 1.0 {
		t.Errorf("of a snippet with an error: %+v", e)
	}
	es = follow(t, s, snippetUser, path, object{"source": "console.log('a'); console.warn('<b>'); export const x = 1; try { process.kill(1) } catch {}"})
	es.logged("[log] a")
	es.logged("[warn] <b>")
	e = es.next()
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(e.data), &keys); err != nil || e.name != "result" {
		t.Fatalf("%+v", e)
	}
	if got, want := slices.Sorted(maps.Keys(keys)), []string{"denials", "derived", "durationMs", "errors", "facts", "logs", "problems", "timedOut", "usage"}; !slices.Equal(got, want) {
		t.Errorf("the keys are %v", got)
	}
	var usage struct{ PeakMemoryBytes, CPUMs float64 }
	if err := json.Unmarshal(keys["usage"], &usage); err != nil || usage.PeakMemoryBytes == 0 {
		t.Errorf("usage: %s", keys["usage"])
	}
	if e := es.next(); e != (snippetEvent{}) {
		t.Errorf("after the result: %+v", e)
	}
}

// A line arrives while the snippet runs, and closing the connection ends the run.
func testAbort(t *testing.T, s *servertest.Server) {
	es := follow(t, s, busy, path, object{"source": forever, "timeoutMs": 10_000})
	es.logged("[log] started")
	if p := servertest.Send(t, s.Client(t, busy), http.MethodPost, path, object{"source": "1"}).Want(t, http.StatusTooManyRequests); p.Code != "quota" {
		t.Errorf("%+v", p)
	}
	es.cancel()
	waitForRun(t, s, busy)
}

// waitForRun waits until a user who may have one run has none.
func waitForRun(t *testing.T, s *servertest.Server, user servertest.User) {
	t.Helper()
	c := s.Client(t, user)
	harness.WaitFor(t, "the run has ended", func() bool {
		return servertest.Send(t, c, http.MethodPost, path, object{"source": "console.log(1)"}).Status == http.StatusOK
	})
}

// Snippets and other runs have one quota.
func testQuotaIsShared(t *testing.T, s *servertest.Server) {
	c := s.Client(t, busy)
	es := follow(t, s, busy, path, object{"source": forever, "timeoutMs": 10_000})
	es.logged("[log] started")
	res := servertest.Send(t, c, http.MethodPost, "/v1/run", object{"code": "1"})
	res.Want(t, http.StatusTooManyRequests)
	es.cancel()
	waitForRun(t, s, busy)

	es = follow(t, s, busy, "/v1/run", object{"code": "console.log('started'); setInterval(() => {}, 1000)"})
	if e := es.next(); e.name != "stdout" {
		t.Fatalf("%+v", e)
	}
	res = servertest.Send(t, c, http.MethodPost, path, object{"source": "1"})
	if res.Want(t, http.StatusTooManyRequests); res.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", res.Header.Get("Retry-After"))
	}
	es.cancel()
	waitForRun(t, s, busy)
}

func testMetrics(t *testing.T, s *servertest.Server) {
	servertest.SkipInFleet(t, "metrics are of each machine")
	res := servertest.Send(t, s.Client(t, root), http.MethodGet, "/metrics", nil)
	for _, want := range []string{`gaol_runs_total{cause="exit",kind="snippet"}`, `gaol_runs_total{cause="timeout",kind="snippet"}`, `gaol_runs{tenant="anonymous"}`, `operation="POST /api/sandbox",status="200"`} {
		if !strings.Contains(string(res.Body), want) {
			t.Errorf("no %s", want)
		}
	}
}

// A client that reads nothing does not occupy a sandbox: the next snippet of the same user, who may have
// one at once, runs.
func testSlowClient(t *testing.T, s *servertest.Server) {
	c, err := servertest.Dial(s.Socket, busy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"source":"for (let i = 0; i < 250; i++) console.log('\\u0001'.repeat(1000))"}` // 1.5 MB of JSON
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // it logs
		t.Fatal(err)
	}
	waitForRun(t, s, busy)
}
