package network

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/test/harness"
	"gaol/test/internettest"
	"gaol/test/tier"
)

const (
	listenAndFetch = `import http from 'node:http'; import { once } from 'node:events';
		const server = http.createServer((q, r) => r.end('hi')).listen(3000, '127.0.0.1'); await once(server, 'listening');
		console.log(await (await fetch('http://127.0.0.1:3000/')).text()); server.close()`
	echo = `import dgram from 'node:dgram'; import { once } from 'node:events';
		const s = dgram.createSocket('udp4').bind(0); await once(s, 'listening'); s.close()`
	unixServer = `import net from 'node:net'; import { once } from 'node:events';
		const s = net.createServer().listen('/tmp/socket'); await once(s, 'listening'); s.close()`
)

// hintCase is a program that fails, and works with what gaol prints about its denials: one piece of advice
// after another.
type hintCase struct {
	name        string
	args        []string // of gaol, before the flags
	flags       []string
	permissions string // --permissions; "" is none
	program     []string
	advice      []string // the beginnings of the printed advice
}

func hintCases(dir, hostServer string) []hintCase {
	run, eval := []string{"run"}, []string{"eval"}
	fetch := func(url string) []string { return []string{"-e", "await (await fetch('" + url + "')).text()"} }
	command := func(args ...string) []string { return append([]string{"--command", "--"}, args...) }
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(hostServer, "http://"))
	const localRule, nameRule = `the rule {"mode":"allow","patterns":["tcp://localhost:*"]}`, `the rule {"mode":"allow","patterns":["tcp://api.example.com:*"]}`
	return []hintCase{
		{"a name", run, nil, "", fetch("http://" + host), []string{"--allow-net api.example.com"}},
		{"a name, of a snippet", eval, nil, "", fetch("http://" + host), []string{"--allow-net api.example.com"}},
		{"a name, without sockets", run, nil, `{"network":"deny"}`, fetch("http://" + host), []string{nameRule}},
		{"a name, of a snippet without sockets", eval, nil, `{"network":"deny"}`, fetch("http://" + host), []string{nameRule}},
		{"a name, of curl", run, nil, "", command("curl", "-sSf", "http://"+host), []string{"--allow-net api.example.com"}},
		{"a name, of curl without sockets", run, nil, `{"network":"deny"}`, command("curl", "-sSf", "http://"+host), []string{nameRule}},
		{"a name, of git", run, nil, "", command("git", "ls-remote", "http://"+host+"/repository"), []string{"--allow-net api.example.com"}},
		{"another name", run, []string{"--allow-net", "other.test"}, "", fetch("http://" + host), []string{"--allow-net api.example.com"}},
		{"another port", run, []string{"--allow-net", host + ":443"}, "", fetch("http://" + host), []string{"--allow-net api.example.com:80"}},
		{"an address", run, nil, "", fetch("http://" + address.String()), []string{"--allow-net 93.184.215.14:80"}},
		{"an address, of curl", run, nil, "", command("curl", "-sSf", "http://"+address.String()), []string{"--allow-net 93.184.215.14:80"}},
		{"an IPv6 address", run, nil, "", fetch("http://[2606:2800:220:1::14]"), []string{"--allow-net '[2606:2800:220:1::14]:80'"}},
		{"a private address", run, nil, "", fetch("http://private.test"), []string{"--allow-net private.test", "--allow-net 10.1.2.3:80"}},
		{"a private address, of a snippet", eval, []string{"--allow-net", "private.test"}, "", fetch("http://private.test"), []string{"--allow-net 10.1.2.3:80"}},
		{"listen", run, nil, `{"network":"deny"}`, []string{"-e", listenAndFetch}, []string{localRule}},
		{"listen, of a snippet", eval, nil, `{"network":"deny"}`, []string{"-e", listenAndFetch}, []string{localRule}},
		{"UDP", run, nil, `{"network":"deny"}`, []string{"-e", echo}, []string{`the rule {"mode":"allow","patterns":["udp://localhost:*"]}`}},
		{"localhost beside a rule for a host", run, nil, `{"network":{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:80"]}]}}`, []string{"-e", listenAndFetch}, []string{localRule}},
		{"the host's localhost", run, nil, "", fetch(hostServer), []string{"--host-port " + port}},
		{"the host's localhost, of a snippet", eval, nil, "", fetch("http://localhost:" + port), []string{"--host-port " + port}},
		{"the host's localhost, of curl", run, nil, "", command("curl", "-sSf", hostServer), []string{"--host-port " + port}},
		{"a unix socket beside a mount", run, []string{"--mount", dir + ":/data"}, "", []string{"-e", unixServer}, []string{"--unix-sockets"}},
		{"a program", run, nil, `{"childProcess":"deny"}`, []string{"-e", "import { execFileSync } from 'node:child_process'; execFileSync('true')"}, []string{`"childProcess": "allow"`}},
		{"a file", run, nil, `{"fs":{"rules":[{"mode":"allow","operations":["read","readdir"],"paths":["/workspace/**"]}]}}`,
			[]string{"-e", "import fs from 'node:fs'; fs.readFileSync('/etc/passwd')"}, []string{"the rule"}},
		{"a new file", run, nil, `{"fs":{"rules":[{"mode":"allow","operations":["read","readdir"],"paths":["/workspace/**"]}]}}`,
			[]string{"-e", "import fs from 'node:fs'; fs.writeFileSync('a', '')"}, []string{"the rule"}},
	}
}

// For each kind of denial, the program works with what gaol prints that would allow it.
func TestHintsWork(t *testing.T) {
	tier.Soak(t)
	internettest.ServeNames(t, map[string][]netip.Addr{host: {address}, "other.test": {address}, "private.test": {netip.MustParseAddr("10.1.2.3")}})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000"+"003f"+strings.Repeat("1", 40)+" refs/heads/main\x00 \n0000")
			return
		}
		_, _ = io.WriteString(w, "served")
	})
	l, err := net.Listen("tcp", "[::]:80") // of every address
	if err != nil {
		t.Fatal(err)
	}
	every := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	every.Start()
	t.Cleanup(every.Close)
	hosts := httptest.NewServer(handler)
	t.Cleanup(hosts.Close)
	for _, c := range harness.Some(hintCases(t.TempDir(), hosts.URL)) {
		t.Run(c.name, func(t *testing.T) { c.follow(t) })
	}
}

// follow runs the program until it works.
func (c hintCase) follow(t *testing.T) {
	for _, want := range c.advice {
		code, stderr := c.run(t)
		if code == 0 {
			t.Fatalf("it works before %q", want)
		}
		found := hint.FindStringSubmatch(stderr)
		if found == nil || !strings.HasPrefix(found[1], want) {
			t.Fatalf("no advice %q: %s", want, stderr)
		}
		c.take(t, found[1])
	}
	if code, stderr := c.run(t); code != 0 {
		t.Errorf("with %v --permissions %s: exit code %d: %s", c.flags, c.permissions, code, stderr)
	}
}

func (c hintCase) run(t *testing.T) (code int, stderr string) {
	args := slices.Concat(c.args, c.flags)
	if c.permissions != "" {
		args = append(args, "--permissions", c.permissions)
	}
	cmd := exec.Command(harness.Gaol(t), append(args, c.program...)...)
	var text strings.Builder
	cmd.Stderr = &text
	_ = cmd.Run() // the exit code says it
	return cmd.ProcessState.ExitCode(), text.String()
}

var (
	hint      = regexp.MustCompile(`(?m)^gaol: denied.*; allow with (.*)$`)
	flagHint  = regexp.MustCompile(`^(--[a-z-]+)(?: ('[^']*'|[^ ,]+))?`)
	ruleHint  = regexp.MustCompile(`^the rule (\{.*\}) at the end of (\w+) in --permissions$`)
	scopeHint = regexp.MustCompile(`^("\w+": "allow") in --permissions$`)
)

// take adds the flags of an advice.
func (c *hintCase) take(t *testing.T, advice string) {
	t.Helper()
	if m := ruleHint.FindStringSubmatch(advice); m != nil {
		p, err := policy.Parse([]byte(c.permissions))
		var rule policy.Rule
		if err == nil {
			err = json.Unmarshal([]byte(m[1]), &rule)
		}
		scope := map[string]*policy.Scope{"fs": &p.FS, "network": &p.Network}[m[2]]
		scope.Rules = append(scope.Rules, rule)
		text, marshal := json.Marshal(p)
		if err != nil || marshal != nil {
			t.Fatal(err, marshal)
		}
		c.permissions = string(text)
		return
	}
	if m := scopeHint.FindStringSubmatch(advice); m != nil {
		c.permissions = "{" + m[1] + "}"
		return
	}
	m := flagHint.FindStringSubmatch(advice)
	if m == nil {
		t.Fatalf("advice %q", advice)
	}
	c.flags = append(c.flags, m[1])
	if m[1] != "--unix-sockets" {
		c.flags = append(c.flags, strings.Trim(m[2], "'"))
	}
}
