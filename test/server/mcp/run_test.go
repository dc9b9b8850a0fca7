package mcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type denial struct{ Scope, Operation, Target, Rule, AllowWith string }

type codeResult struct {
	Output, NoValue, SandboxID, ContextID, Cause string
	Value                                        any
	Error                                        *struct{ Name, Message, Stack, Frame string }
	Truncated                                    bool
	Denials                                      []denial
}

type commandResult struct {
	Stdout, Stderr, Cause, SandboxID string
	ExitCode                         int
	Truncated                        bool
	Denials                          []denial
}

// TestRun runs code and commands with one client for each of two protocol versions.
func TestRun(t *testing.T) {
	socket := start(t, nil)
	s := connect(t, socket, alice, "")
	old := connect(t, socket, alice, "2024-11-05")
	t.Run("value", func(t *testing.T) { testValue(t, s.in(t)) })
	t.Run("value in a session", func(t *testing.T) { testValue(t, old.in(t)) })
	t.Run("failure", func(t *testing.T) { testFailure(t, s.in(t)) })
	t.Run("denial", func(t *testing.T) { testDenial(t, s.in(t)) })
	t.Run("context", func(t *testing.T) { testContext(t, s.in(t)) })
	t.Run("command", func(t *testing.T) { testCommand(t, s.in(t)) })
	t.Run("long output", func(t *testing.T) { testLongOutput(t, s.in(t)) })
	t.Run("arguments", func(t *testing.T) { testArguments(t, s.in(t)) })
	t.Run("files", func(t *testing.T) { testFiles(t, s.in(t)) })
	t.Run("edit", func(t *testing.T) { testEdit(t, s.in(t)) })
	t.Run("image", func(t *testing.T) { testImage(t, s.in(t)) })
	t.Run("process", func(t *testing.T) { testProcess(t, s.in(t)) })
	t.Run("process of a session", func(t *testing.T) { testProcess(t, old.in(t)) })
}

func testValue(t *testing.T, s *session) {
	var out codeResult
	r := s.ok("run_code", args{"code": "console.log('hello'); const n: number = 6; ({ n: n * 7 })", "language": "ts"}, &out)
	if diff := cmp.Diff(map[string]any{"n": 42.0}, out.Value); diff != "" || out.Output != "hello\n" || out.SandboxID != "" {
		t.Errorf("%+v %s", out, diff)
	}
	if r.text != "hello\n=> {\"n\":42}" {
		t.Errorf("text %q", r.text)
	}
}

func testFailure(t *testing.T, s *session) {
	var out codeResult
	r := s.fails("run_code", args{"code": "console.log(1)\nnull.x"}, "1\nTypeError", "null.x")
	r.decode(t, &out)
	if out.Output != "1\n" || out.Error == nil || out.Error.Name != "TypeError" || !strings.Contains(out.Error.Frame, "null.x") {
		t.Errorf("%+v", out)
	}
	s.fails("run_code", args{"code": "let ="}, "SyntaxError")
	s.fails("run_code", args{"code": "for (;;);", "timeoutMs": 300}, "TimeoutError").decode(t, &out)
	if out.Cause != "timeout" {
		t.Errorf("%+v", out)
	}
	s.fails("run_code", args{"code": "1", "timeoutMs": int64(1) << 40}, "more than the server's")
	if testing.Short() {
		return
	}
	s.fails("run_code", args{"code": "for (;;) console.log('x'.repeat(900_000))", "timeoutMs": 60_000}, "more than 16 MiB").decode(t, &out)
	if out.Cause != "output" || !out.Truncated {
		t.Errorf("cause %q, truncated %v", out.Cause, out.Truncated)
	}
}

// testDenial uses the sandbox's own localhost, which no rule allows, and follows the advice that a result has.
func testDenial(t *testing.T, s *session) {
	s.ok("run_code", args{"code": `const http = require('node:http'), { once } = require('node:events');
		const server = http.createServer((q, r) => r.end('own')).listen(80, '127.0.0.1'); await once(server, 'listening');
		const text = await (await fetch('http://127.0.0.1/')).text(); server.close(); if (text !== 'own') throw new Error(text)`}, nil)
	fetch := func(host string) (d denial) {
		var out codeResult
		r := s.fails("run_code", args{"code": "await fetch('http://" + host + "/')"}, "network")
		r.decode(t, &out)
		if len(out.Denials) == 0 {
			t.Fatalf("%+v", out)
		}
		if d = out.Denials[len(out.Denials)-1]; d.AllowWith != "" && !strings.Contains(r.text, "allow with "+d.AllowWith) {
			t.Errorf("text %s", r.text)
		}
		return d
	}
	if d := fetch("gaol.example"); d.AllowWith != `the rule {"mode":"allow","patterns":["tcp://gaol.example:*"]} at the end of network in permissions of create_sandbox` {
		t.Errorf("%+v", d)
	}
	rules := []any{args{"mode": "allow", "patterns": []string{"tcp://gaol.example:*"}}}
	s.ok("close_sandbox", args{"sandboxId": s.create(args{"permissions": args{"network": args{"default": "deny", "rules": rules}}})}, nil)

	// The server's settings forbid private addresses.
	if d := fetch("10.1.2.3"); d.AllowWith != "" {
		t.Errorf("%+v", d)
	}

	var out codeResult
	small := s.create(args{"limits": args{"diskBytes": 1 << 20}})
	s.fails("run_code", args{"code": "require('fs').writeFileSync('large', Buffer.alloc(2 << 20))", "sandboxId": small},
		"limit reached: disk 1 MiB (limits.diskBytes); allow with a higher limits.diskBytes of create_sandbox").decode(t, &out)
	if len(out.Denials) != 1 || out.Denials[0].AllowWith != "a higher limits.diskBytes of create_sandbox" {
		t.Errorf("%+v", out.Denials)
	}
	s.ok("close_sandbox", args{"sandboxId": small}, nil)
}

func testContext(t *testing.T, s *session) {
	var first, second codeResult
	s.ok("run_code", args{"code": "const a = 20", "contextId": "new"}, &first)
	if first.ContextID == "" || first.SandboxID == "" {
		t.Fatalf("%+v", first)
	}
	s.ok("run_code", args{"code": "a + 1", "contextId": first.ContextID}, &second)
	if second.Value != 21.0 || second.ContextID != first.ContextID {
		t.Errorf("%+v", second)
	}
	s.fails("run_code", args{"code": "1", "contextId": first.ContextID, "sandboxId": "sb-other"}, "omit sandboxId")
	s.fails("run_code", args{"code": "process.exit(3)", "contextId": first.ContextID}, "has ended")
	s.fails("run_code", args{"code": "a", "contextId": first.ContextID}, "ariables are lost", `contextId "new"`)
	s.ok("close_sandbox", args{"sandboxId": first.SandboxID}, nil)
}

func testCommand(t *testing.T, s *session) {
	var out commandResult
	s.ok("run_command", args{"command": "echo out; echo err >&2; cat | wc -c", "stdin": "four"}, &out)
	if out.Stdout != "out\n4\n" || out.Stderr != "err\n" || out.SandboxID != "" {
		t.Errorf("%+v", out)
	}
	s.ok("run_command", args{"command": "node", "args": []string{"-p", "process.argv[1] + process.env.X", "a b;c"}, "env": args{"X": "!"}}, &out)
	if out.Stdout != "a b;c!\n" {
		t.Errorf("%+v", out)
	}
	s.fails("run_command", args{"command": "exit 3"}, "[exit code 3]").decode(t, &out)
	if out.ExitCode != 3 {
		t.Errorf("%+v", out)
	}
	s.fails("run_command", args{"command": "no-such-program", "args": []string{}}, "no-such-program")
}

// testLongOutput reads the rest of output that was cut.
func testLongOutput(t *testing.T, s *session) {
	var out codeResult
	r := s.ok("run_code", args{"code": "for (let i = 0; i < 30_000; i++) console.log(`line ${i}`)\n'x'.repeat(50_000)"}, &out)
	if !out.Truncated || out.SandboxID == "" || len(r.text) > 45_000 || len(out.Output) > 40_000 || out.Value != nil {
		t.Fatalf("truncated %v, sandbox %q, %d bytes, value %.20v", out.Truncated, out.SandboxID, len(r.text), out.Value)
	}
	sizes := []int{}
	for _, c := range r.Content {
		link, ok := c.(*mcp.ResourceLink)
		if !ok {
			continue
		}
		read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
		if err != nil {
			t.Fatal(err)
		}
		text := read.Contents[0].Text
		if int64(len(text)) != *link.Size {
			t.Errorf("%s: %d bytes, the link says %d", link.URI, len(text), *link.Size)
		}
		if link.Name == "output.txt" && !strings.HasPrefix(text, out.Output) {
			t.Errorf("%s does not begin with the output", link.URI)
		}
		sizes = append(sizes, len(text))
	}
	if diff := cmp.Diff([]int{318_890, 50_002}, sizes); diff != "" {
		t.Error(diff)
	}
	var command commandResult
	s.ok("run_command", args{"command": "seq 20000; seq 20000 >&2", "sandboxId": out.SandboxID}, &command)
	if !command.Truncated || len(command.Stdout)+len(command.Stderr) > 40_000 || len(command.Stderr) < 10_000 {
		t.Errorf("%d and %d bytes", len(command.Stdout), len(command.Stderr))
	}
}
