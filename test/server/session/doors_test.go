package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/server/operation"
	protocol "gaol/internal/session"
	"gaol/test/server/servertest"
)

// step is a request to make through each door. In its input, $sandbox, $process, $second, $context, $batch and
// $failing are the ids of what earlier steps have made.
type step struct {
	operation, in string
	save          string // the name for the id of the result
	data          string // that the request carries
	value         any    // of the result; nil: compared among the doors alone
	rule          string // of a denial of the result, likewise
}

// steps use each operation, also with inputs that are refused.
var steps = []step{
	{operation: "run", in: `{"code": "console.log(1); console.error(2); __return([process.argv[2], 3])", "args": ["a"], "timeoutMs": 20000}`},
	{operation: "run", in: `{"code": "process.exit(3)", "maxTimeout": true}`},
	{operation: "run", in: `{"code": "1", "timeoutMs": 1, "maxTimeout": true}`},
	{operation: "run", in: `{"code": "1", "permissions": {"network": "perhaps"}}`},
	{operation: "run", in: `{"code": 1}`},
	{operation: "run", in: `{"code": "1", "more": 1}`},
	{operation: "run", in: `{}`},
	{operation: "run", in: `[]`},
	{operation: "command", in: `{"command": "sh", "args": ["-c", "cat a; exit 2"], "files": {"/workspace/a": "text"}, "env": {"A": "b"}}`},
	{operation: "command", in: `{"command": "true", "permissions": {"network": "perhaps"}}`},
	{operation: "command", in: `{"command": "sh", "args": ["-c", "cat; echo $A >&2; exit 2"], "env": {"A": "b"}, "stdin": "in"}`},
	{operation: "command", in: `{"command": "nosuch"}`},
	{operation: "evaluate", in: `{"code": "console.log(x); x + 1", "globals": {"x": 41}}`},
	{operation: "evaluate", in: `{"code": "null.x", "maxLogs": 5}`},
	{operation: "evaluate", in: `{"code": "[1, 'a']"}`, value: []any{1.0, "a"}},
	{operation: "evaluate", in: `{"code": "export const answer = 42"}`, value: map[string]any{"answer": 42.0}},
	{operation: "evaluate", in: `{"code": "total = 0; for (i = 0; i < 3; i++) total += i; total"}`, value: 3.0},
	{operation: "evaluate", in: `{"code": "1", "timeoutMs": -1}`},
	{operation: "submitRun", in: `{"code": "__return(process.argv[2])", "args": ["a"], "files": {"/workspace/a": "text"}}`, save: "batch"},
	{operation: "submitRun", in: `{"code": "1", "command": "true"}`},
	{operation: "submitRun", in: `{"code": "1", "idempotencyKey": "a b"}`},
	{operation: "submitRun", in: `{"code": "1", "mounts": [{"source": "/tmp", "target": "/x"}]}`},
	{operation: "waitBatchRun", in: `{"key": "$batch"}`},
	{operation: "waitBatchRun", in: `{"key": "$batch", "timeoutMs": -1}`},
	{operation: "getBatchRun", in: `{"key": "$batch"}`},
	{operation: "getBatchRun", in: `{"key": "no"}`},
	{operation: "followBatchRun", in: `{"key": "no"}`},
	{operation: "cancelBatchRun", in: `{"key": "$batch"}`},
	{operation: "cancelBatchRun", in: `{"key": "no"}`},
	{operation: "submitRun", in: `{"command": "nosuch"}`, save: "failing"},
	{operation: "waitBatchRun", in: `{"key": "$failing"}`},
	{operation: "createSandbox", in: `{"env": {"A": "b"}, "globals": {"g": {"h": 1}}, "permissions": {"network": "deny"}, "limits": {"diskBytes": 1048576, "files": 300}}`, save: "sandbox"},
	{operation: "createSandbox", in: `{"idleTimeoutMs": 1000000000000}`},
	{operation: "listSandboxes", in: `{}`},
	{operation: "getSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "getSandbox", in: `{"sandbox": "no"}`},
	{operation: "renewSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "pauseSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "pauseSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "getSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "1"}`},
	{operation: "evaluateIn", in: `{"sandbox": "$sandbox", "code": "1"}`},
	{operation: "spawn", in: `{"sandbox": "$sandbox", "command": "cat"}`},
	{operation: "createContext", in: `{"sandbox": "$sandbox"}`},
	{operation: "resumeSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "resumeSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "pauseSandbox", in: `{"sandbox": "no"}`},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "__return([process.env.A, g.h])", "stdin": "x"}`},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "throw new RangeError('x', { cause: [1] })"}`},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "setInterval(() => {}, 1000)", "timeoutMs": 300}`},
	{operation: "execIn", in: `{"sandbox": "$sandbox", "code": "console.log(typeof __return); process.stdin.pipe(process.stdout)", "stdin": "text"}`},
	{operation: "commandIn", in: `{"sandbox": "$sandbox", "command": "sh", "args": ["-c", "printf '\\377'; exit 4"]}`},
	{operation: "commandIn", in: `{"sandbox": "$sandbox", "command": "nosuch"}`},
	{operation: "commandIn", in: `{"sandbox": "$sandbox", "command": "/etc/passwd"}`},
	{operation: "commandIn", in: `{"sandbox": "$sandbox", "command": "true", "cwd": "/nosuch"}`},
	{operation: "evaluateIn", in: `{"sandbox": "$sandbox", "code": "fetch('http://192.0.2.1').catch(e => e.cause.code)", "form": "text"}`},
	{operation: "evaluateIn", in: `{"sandbox": "$sandbox", "code": "g.h + process.env.A"}`},
	{operation: "evaluateIn", in: `{"sandbox": "no", "code": "1"}`},
	{operation: "spawn", in: `{"sandbox": "$sandbox", "command": "cat"}`, save: "process"},
	{operation: "spawn", in: `{"sandbox": "$sandbox", "code": "process.exit(5)", "terminal": {"rows": 2, "cols": 3}}`, save: "second"},
	{operation: "spawn", in: `{"sandbox": "$sandbox"}`},
	{operation: "waitProcess", in: `{"sandbox": "$sandbox", "process": "$second"}`},
	{operation: "waitProcess", in: `{"sandbox": "$sandbox", "process": "$process", "timeoutMs": 1}`},
	{operation: "resizeProcess", in: `{"sandbox": "$sandbox", "process": "$process", "rows": 1, "cols": 1}`},
	{operation: "resizeProcess", in: `{"sandbox": "$sandbox", "process": "$process", "rows": 0, "cols": 1}`},
	{operation: "writeProcess", in: `{"sandbox": "$sandbox", "process": "$process", "text": "line\n"}`},
	{operation: "signalProcess", in: `{"sandbox": "$sandbox", "process": "$process", "signal": "SIGNOSUCH"}`},
	{operation: "signalProcess", in: `{"sandbox": "$sandbox", "process": "$process", "signal": "SIGTERM"}`},
	{operation: "waitProcess", in: `{"sandbox": "$sandbox", "process": "$process"}`},
	{operation: "getProcess", in: `{"sandbox": "$sandbox", "process": "$second"}`},
	{operation: "listProcesses", in: `{"sandbox": "$sandbox"}`},
	{operation: "deleteProcess", in: `{"sandbox": "$sandbox", "process": "$process"}`},
	{operation: "getProcess", in: `{"sandbox": "$sandbox", "process": "$process"}`},
	{operation: "createContext", in: `{"sandbox": "$sandbox", "globals": {"n": 1}}`, save: "context"},
	{operation: "createContext", in: `{"sandbox": "$sandbox", "idleTimeoutMs": 1, "maxIdleTimeout": true}`},
	{operation: "evaluateCell", in: `{"sandbox": "$sandbox", "context": "$context", "code": "let m = n + 1; m"}`},
	{operation: "evaluateCell", in: `{"sandbox": "$sandbox", "context": "$context", "code": "m + 1"}`},
	{operation: "completeInContext", in: `{"sandbox": "$sandbox", "context": "$context", "line": "Math.flo"}`},
	{operation: "interruptContext", in: `{"sandbox": "$sandbox", "context": "$context"}`},
	{operation: "getContext", in: `{"sandbox": "$sandbox", "context": "$context"}`},
	{operation: "listContexts", in: `{"sandbox": "$sandbox"}`},
	{operation: "evaluateCell", in: `{"sandbox": "$sandbox", "context": "$context", "code": "process.exit(6)"}`},
	{operation: "followProcess", in: `{"sandbox": "$sandbox", "process": "no"}`},
	{operation: "deleteContext", in: `{"sandbox": "$sandbox", "context": "$context"}`},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/d/f", "createParents": true, "mode": "600"}`, data: "content"},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/d/f", "mode": "9"}`, data: "content"},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "relative"}`, data: "content"},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/h"}`, data: "text"},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "/usr/h"}`, data: "text"},
	{operation: "listFiles", in: `{"sandbox": "$sandbox", "path": "/workspace"}`},
	{operation: "listFiles", in: `{"sandbox": "$sandbox", "path": "/workspace/h"}`},
	{operation: "readFile", in: `{"sandbox": "$sandbox", "path": "/workspace/nosuch"}`},
	{operation: "readFile", in: `{"sandbox": "$sandbox", "path": "/workspace"}`},
	{operation: "packFolder", in: `{"sandbox": "$sandbox", "path": "/workspace/h"}`},
	{operation: "packFolder", in: `{"sandbox": "$sandbox", "path": "relative"}`},
	{operation: "statFile", in: `{"sandbox": "$sandbox", "path": "/workspace/d/f", "links": true}`},
	{operation: "makeFolder", in: `{"sandbox": "$sandbox", "path": "/workspace/e"}`},
	{operation: "moveFile", in: `{"sandbox": "$sandbox", "from": "/workspace/d/f", "to": "/workspace/e/g"}`},
	{operation: "listFiles", in: `{"sandbox": "$sandbox", "path": "/workspace", "recursive": true, "limit": 10}`},
	{operation: "listFiles", in: `{"sandbox": "$sandbox", "path": "/workspace", "recursive": true, "exclude": "e"}`},
	{operation: "removeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/e"}`},
	{operation: "removeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/e", "recursive": true}`},
	{operation: "unpackFolder", in: `{"sandbox": "$sandbox", "path": "/workspace"}`, data: "no archive"},
	{operation: "unpackFolder", in: `{"sandbox": "$sandbox", "path": "/workspace"}`, data: strings.Repeat("\x00", 1024)},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/e.ts"}`, data: "export enum E { A = 7 }\nexport type T = number"},
	{operation: "writeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/tsconfig.json"}`, data: `{"compilerOptions": {"experimentalDecorators": true}}`},
	{operation: "evaluateIn", in: `{"sandbox": "$sandbox", "code": "import { E } from './e'; E.A"}`, value: 7.0},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "import { E, type T } from './e.js'; const t: T = E.A; __return(t)", "name": "main.ts"}`, value: 7.0},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "function P(t: any, k: any, i: number) { __return(i) }\nclass A { f(x: number, @P y: number) {} }", "name": "main.ts"}`, value: 1.0},
	{operation: "runIn", in: `{"sandbox": "$sandbox", "code": "import fs from 'node:fs'; fs.mkdirSync('full'); try { fs.writeFileSync('full/f', Buffer.alloc(2 << 20)) } catch (e) { console.log(e.code); process.exit(3) }"}`, rule: "limits.diskBytes"},
	{operation: "evaluateIn", in: `{"sandbox": "$sandbox", "code": "require('fs').writeFileSync('full/g', 'x')"}`, rule: "limits.diskBytes"},
	{operation: "removeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/full", "recursive": true}`},
	{operation: "commandIn", in: `{"sandbox": "$sandbox", "command": "sh", "args": ["-c", "mkdir full && cd full && while :; do mkdir -p d && cd d || exit 1; done"]}`, rule: "limits.files"},
	{operation: "removeFile", in: `{"sandbox": "$sandbox", "path": "/workspace/full", "recursive": true}`},
	{operation: "listListeners", in: `{"sandbox": "$sandbox"}`},
	{operation: "waitForPort", in: `{"sandbox": "$sandbox", "port": 3000, "timeoutMs": 1}`},
	{operation: "waitForPort", in: `{"sandbox": "$sandbox", "port": 0, "timeoutMs": 1}`},
	{operation: "takeSnapshot", in: `{"sandbox": "$sandbox", "name": "doors"}`},
	{operation: "takeSnapshot", in: `{"sandbox": "$sandbox", "name": "doors"}`},
	{operation: "listSnapshots", in: `{}`},
	{operation: "deleteSnapshot", in: `{"name": "doors"}`},
	{operation: "buildImage", in: `{"name": "doors", "steps": [{"run": "true"}]}`},
	{operation: "buildImage", in: `{"name": "Doors", "steps": [{"run": "true"}]}`},
	{operation: "listImages", in: `{}`},
	{operation: "deleteImage", in: `{"name": "doors"}`},
	{operation: "getUsage", in: `{"sandbox": "$sandbox"}`},
	{operation: "describeSnippets", in: `{}`},
	{operation: "deleteSandbox", in: `{"sandbox": "$sandbox"}`},
	{operation: "deleteSandbox", in: `{"sandbox": "$sandbox"}`},
}

// Operations that only one door has, and runSnippet, whose response by HTTP another API has fixed.
var special = []string{"runSnippet", "tool", "normalize", "addCommands", "dial"}

// TestDoors: all doors have the same operations, with the same results and errors.
func TestDoors(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Batch: true})
	r := newRaw(t, s, `{}`)
	r.request(1<<20, "deleteSandbox", `{"sandbox":"SB"}`)
	r.until(1<<20, protocol.KindResult)
	web := s.Client(t, servertest.User{})
	model := newMCP(t, s, web)
	remote, local := &goDoor{t: t, web: web, client: dial(t, s), used: map[string]bool{}}, &goDoor{t: t, sandboxes: map[string]runner{}, used: map[string]bool{}}
	want := through(func(s step) (reply, func(reply) reply) { return byHTTP(t, web, s), nil })
	for i, s := range steps {
		if result, _ := want[i].Result.(map[string]any); s.value != nil && !reflect.DeepEqual(result["value"], s.value) {
			t.Errorf("%s %s: %v, not the value %v", s.operation, s.in, want[i].reply, s.value)
		}
		if result, _ := want[i].Result.(map[string]any); s.rule != "" && !strings.Contains(fmt.Sprint(result["denials"]), "rule:"+s.rule) {
			t.Errorf("%s %s: %v, no denial by %s", s.operation, s.in, want[i].reply, s.rule)
		}
	}
	doors := map[string]func(step) (reply, func(reply) reply){
		"session": func(s step) (reply, func(reply) reply) { return r.bySession(s), nil },
		"MCP":     model.do,
		"client": func(s step) (reply, func(reply) reply) {
			got, _ := remote.do(s)
			return got, nil
		},
		"SDK": func(s step) (reply, func(reply) reply) {
			got, ok := local.do(s)
			return got, func(want reply) reply { return inSDK(s, want, ok) }
		},
	}
	for name, do := range doors {
		compareDoor(t, name, want, do)
	}
	t.Run("npm", func(t *testing.T) { compareDoor(t, "npm", want, newNPM(t, s)) })
	for name := range toolsOf {
		if !model.used[name] {
			t.Errorf("no tool has performed %s", name)
		}
	}
	for _, name := range inGo {
		if !remote.used[name] || !local.used[name] {
			t.Errorf("%s: performed by the client: %v, by the SDK: %v", name, remote.used[name], local.used[name])
		}
	}
	for _, o := range operation.All() {
		used := slices.ContainsFunc(steps, func(s step) bool { return s.operation == o.Name })
		if used == slices.Contains(special, o.Name) {
			t.Errorf("%s: used by a step: %v", o.Name, used)
		}
	}
}

// compareDoor makes all requests through a door, and compares the replies with HTTP's.
func compareDoor(t *testing.T, name string, want []outcome, do func(step) (reply, func(reply) reply)) {
	t.Helper()
	for i, got := range through(do) {
		expected := want[i].reply
		if got.common != nil {
			expected = got.common(expected)
		}
		if diff := cmp.Diff(expected, got.reply); diff != "" {
			t.Errorf("%s %s (- HTTP, + %s):\n%s", steps[i].operation, steps[i].in, name, diff)
		}
	}
}

// outcome is the reply of a door to a step, and what it has in common with HTTP's.
type outcome struct {
	reply
	common func(reply) reply // nil: everything
}

// through makes all requests through a door.
func through(do func(step) (reply, func(reply) reply)) (all []outcome) {
	ids := map[string]string{}
	for _, s := range steps {
		for name, id := range ids {
			s.in = strings.ReplaceAll(s.in, "$"+name, id)
		}
		got, common := do(s)
		if result, ok := got.Result.(map[string]any); ok && s.save != "" {
			ids[s.save], _ = result["id"].(string)
			if key, ok := result["key"].(string); ok {
				ids[s.save] = key
			}
			if common != nil {
				delete(result, "id")
			}
		}
		all = append(all, outcome{reply{got.Code, got.Status, stable(got.Result, ids)}, common})
	}
	return all
}

// reply is the reply of a door.
type reply struct {
	Code   string // of an error
	Status int    // likewise
	Result any
}

// volatile are the members of results that differ from time to time.
var volatile = []string{
	"created", "expires", "lifetimeEnd", "started", "ended", "submitted", "done", "modified", "durationMs", "queuedMs", "ms", "pid", "usage", "memoryBytes", "diskBytes",
	"openFds", "pipes", "sockets", "runningProcesses", "exitedProcesses", "launcherReason", "lastEventId", "stack",
}

// stable returns a result without volatile members, and with names instead of ids.
func stable(v any, ids map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		members := maps.Clone(v)
		for name, m := range members {
			if slices.Contains(volatile, name) || name == "files" && v["diskBytes"] != nil { // of the usage, not of a folder
				delete(members, name)
				continue
			}
			members[name] = stable(m, ids)
		}
		return members
	case []any:
		list := slices.Clone(v)
		for i := range list {
			list[i] = stable(list[i], ids)
		}
		return list
	case string:
		for name, id := range ids {
			if id != "" {
				v = strings.ReplaceAll(v, id, "$"+name)
			}
		}
		return v
	}
	return v
}

// bySession makes a request of the session.
func (r *raw) bySession(s step) reply {
	r.t.Helper()
	const id = 7
	r.request(id, s.operation, s.in)
	if s.data != "" {
		r.send(protocol.Append(nil, protocol.KindStdin, id, []byte(s.data)))
		r.send(protocol.Append(nil, protocol.KindStdin, id))
	}
	var stdout, stderr bytes.Buffer
	for {
		f, err := r.next()
		switch {
		case err != nil:
			r.t.Fatal(err)
		case f.ID != id:
		case f.Kind == protocol.KindStdout:
			stdout.Write(f.Body)
		case f.Kind == protocol.KindStderr:
			stderr.Write(f.Body)
		case f.Kind == protocol.KindError:
			return parseReply(r.t, f.Body, true)
		case f.Kind == protocol.KindResult:
			answer := parseReply(r.t, f.Body, false)
			if run, ok := answer.Result.(map[string]any); ok && run["exitCode"] != nil && run["stdout"] != nil && run["state"] == nil {
				run["stdout"], run["stderr"] = asText(stdout.Bytes()), asText(stderr.Bytes())
			}
			return answer
		}
	}
}

func asText(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// byHTTP makes the same request of the API.
func byHTTP(t *testing.T, c *http.Client, s step) reply {
	t.Helper()
	o := operation.ByName(s.operation)
	var in any
	if err := json.Unmarshal([]byte(s.in), &in); err != nil {
		t.Fatal(err)
	}
	fields, _ := in.(map[string]any)
	path := o.Path
	for _, f := range o.PathFields {
		path = strings.Replace(path, "{"+f.Name+"}", fmt.Sprint(fields[f.Field]), 1)
		delete(fields, f.Field)
	}
	var body io.Reader
	switch {
	case o.Query:
		query := url.Values{}
		for name, v := range fields {
			query.Set(name, fmt.Sprint(v))
		}
		path += "?" + query.Encode()
		body = strings.NewReader(s.data)
	case o.HasBody():
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(soon(t), o.Method, "http://gaol"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if o.HasBody() {
		request.Header.Set("Content-Type", "application/json")
	}
	res := servertest.Do(t, c, request)
	answer := parseReply(t, res.Body, res.Status >= 400)
	if run, ok := answer.Result.(map[string]any); ok {
		delete(run, "stdoutBytes") // sessions have output as bytes
		delete(run, "stderrBytes")
	}
	return answer
}

// parseReply parses a result, or a problem.
func parseReply(t testing.TB, text []byte, failed bool) (r reply) {
	t.Helper()
	if failed {
		var p protocol.Problem
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return reply{p.Code, p.Status, nil}
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &r.Result); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return r
}
