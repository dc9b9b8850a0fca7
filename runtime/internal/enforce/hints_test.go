package enforce

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

// afterHint returns the denials after the hint of a failed run's standard error.
func afterHint(d *Denials, stderr string) []policy.Denial {
	d.AddHint(1, []byte(stderr))
	all, _ := d.Since(nil)
	return all
}

// The texts are copied from output of Node.
func TestHints(t *testing.T) {
	out := policy.Strict()
	out.FS = policy.Scope{Rules: []policy.Rule{
		{Mode: policy.Allow, Operations: []policy.Operation{"read", "readdir"}, Paths: []string{"/workspace/**"}},
		{Mode: policy.Allow, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/workspace/out/**"}},
	}}
	out.Network.Rules = []policy.Rule{{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:*"}}}
	fs := func(op policy.Operation, target string) []policy.Denial {
		return []policy.Denial{{Scope: "fs", Operation: op, Target: target, Rule: "fs.default", Count: 1, Source: policy.SourceStderr}}
	}
	for _, tc := range []struct {
		text string
		want []policy.Denial
	}{
		{"Error: EACCES: permission denied, open '/etc/passwd'", fs("read", "/etc/passwd")},
		{"Error: EACCES: permission denied, mkdir 'd'", fs("create_dir", "/workspace/d")},
		{"Error: EACCES: permission denied, open 'out/../x'", fs("write", "/workspace/x")},
		{"Error: EACCES: permission denied, open 'out/x'", fs("read", "/workspace/out/x")[:0]},
		{"Error: EACCES: permission denied, rename 'out/a' -> 'a'", fs("rename", "/workspace/a")},
		{"Error: EACCES: permission denied, rename 'a' -> 'out/a'", fs("rename", "/workspace/a")},
		{"Error: EACCES: permission denied, symlink '/etc' -> 'a'", fs("symlink", "/workspace/a")},
		{"Error: EACCES: permission denied, copyfile 'in' -> 'a'", fs("write", "/workspace/a")},
		{"Error: EROFS: read-only file system, open '/usr/x'", fs("read", "/usr/x")},
		{"Error: ENOENT: no such file or directory, open '/etc/passwd'", nil},
		{"  [cause]: Error: connect EACCES 127.0.0.1:80 - Local (0.0.0.0:0)",
			[]policy.Denial{{Scope: "network", Operation: "connect", Target: "tcp://127.0.0.1:80", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: connect EACCES ::1:80 - Local (:::0)",
			[]policy.Denial{{Scope: "network", Operation: "connect", Target: "tcp://[::1]:80", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: connect ECONNREFUSED 127.0.0.1:80", []policy.Denial{{Scope: "network", Operation: "connect", Target: "tcp://127.0.0.1:80", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: listen EACCES: permission denied 0.0.0.0:80", nil}, // allowed here
		{"Error: bind EACCES 0.0.0.0",
			[]policy.Denial{{Scope: "network", Operation: "listen", Target: "udp://localhost:*", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: bind EACCES 127.0.0.1:53",
			[]policy.Denial{{Scope: "network", Operation: "listen", Target: "udp://localhost:53", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: connect ENETUNREACH 192.0.2.1:80 - Local (0.0.0.0:0)",
			[]policy.Denial{{Scope: "network", Operation: "connect", Target: "tcp://192.0.2.1:80", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"  [cause]: Error: getaddrinfo EAI_AGAIN example.com",
			[]policy.Denial{{Scope: "network", Operation: "dns", Target: "dns://example.com", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
			[]policy.Denial{{Scope: "network", Operation: "dns", Target: "dns://registry.npmjs.org", Rule: "network.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: kill EPERM", []policy.Denial{{Scope: "process", Operation: "signal", Rule: "process.default", Count: 1, Source: policy.SourceStderr}}},
		{"<ref *1> Error: spawnSync /bin/sh EACCES", []policy.Denial{{Scope: "childProcess", Operation: "spawn", Target: "/bin/sh", Rule: "childProcess.default", Count: 1, Source: policy.SourceStderr}}},
		{"Error: spawn ls EPERM", []policy.Denial{{Scope: "childProcess", Operation: "spawn", Target: "ls", Rule: "childProcess.default", Count: 1, Source: policy.SourceStderr}}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			d := NewDenials(out, "/workspace")
			got := afterHint(d, "\n"+tc.text+"\n    at x\n\nNode.js v24.21.0\n")
			if diff := cmp.Diff(append([]policy.Denial{}, tc.want...), append([]policy.Denial{}, got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(tc.text, "ECONNREFUSED") {
				return // also with everything allowed: see TestHintsOfHostPorts
			}
			all := policy.Open()
			all.Network = policy.Scope{Default: policy.Allow, Rules: []policy.Rule{ // including external hosts
				{Mode: policy.Allow, Patterns: []string{"tcp://192.0.2.0/24:*"}}}}
			open := NewDenials(all, "/workspace")
			if got := afterHint(open, tc.text+"\nNode.js v24.21.0\n"); len(got) > 0 {
				t.Errorf("with nothing denied: %+v", got)
			}
		})
	}
}

// A connect that nothing in the sandbox accepts hints at a port of the host, if it is allowed.
func TestHintsOfHostPorts(t *testing.T) {
	for text, want := range map[string]string{
		"Error: connect ECONNREFUSED 127.0.0.1:5432\n\nNode.js v24.0.0":                             "tcp://127.0.0.1:5432",
		"[errors]: [\n Error: connect ECONNREFUSED ::1:5432\n  ]\nNode.js v24.0.0":                  "tcp://[::1]:5432",
		"curl: (7) Failed to connect to localhost port 5432 after 0 ms: Couldn't connect to server": "tcp://localhost:5432",
		"Error: connect ECONNREFUSED 127.0.0.2:5432\n\nNode.js v24.0.0":                             "",
	} {
		got := afterHint(NewDenials(policy.Default(), "/workspace"), text)
		if want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Target != want || got[0].Rule != HostPorts {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
}

// Other programs print which host they miss.
func TestHintsOfTools(t *testing.T) {
	for text, want := range map[string]string{
		"curl: (6) Could not resolve host: Example.com":                                           "dns dns://example.com",
		"fatal: unable to access 'https://a.test/x/': Could not resolve host: a.test":             "dns dns://a.test",
		"ssh: Could not resolve hostname a.test: Temporary failure in name resolution":            "dns dns://a.test",
		"wget: bad address 'a.test'":                                                              "dns dns://a.test",
		"curl: (7) Failed to connect to 192.0.2.1 port 80 after 0 ms: Couldn't connect to server": "connect tcp://192.0.2.1:80",
		"curl: (22) The requested URL returned error: 404":                                        "",
	} {
		got := afterHint(NewDenials(policy.Default(), "/workspace"), text)
		if want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || string(got[0].Operation)+" "+got[0].Target != want || got[0].Rule != "network.default" {
			t.Errorf("%q: %+v, want %q", text, got, want)
		}
	}
}

// A hint does not repeat a denial that the kernel has reported.
func TestHintOnce(t *testing.T) {
	outside := NewDenials(policy.Strict(), "/workspace")
	outside.add(policy.Denial{Scope: "network", Operation: "socket", Target: "AF_INET SOCK_DGRAM", Source: policy.SourceSeccomp})
	if got := afterHint(outside, "npm error getaddrinfo EAI_AGAIN example.com"); len(got) != 2 {
		t.Errorf("a host outside: got %+v", got)
	}
	reported := NewDenials(policy.Strict(), "/workspace")
	reported.AddEgress(policy.Denial{Operation: "connect", Target: "tcp://example.com:443"}, -1, "")
	if got := afterHint(reported, "Error: connect EACCES 198.18.0.1:443\nNode.js v24.21.0\n"); len(got) != 1 {
		t.Errorf("a host outside that the way out has refused: got %+v", got)
	}
	for _, text := range []string{
		"Error: EPERM: operation not permitted, chmod '/tmp'",
		"Error: connect EACCES 127.0.0.1:80 - Local (undefined:undefined)",
		"Error: spawnSync ls EPERM",
	} {
		d := NewDenials(policy.Strict(), "/workspace")
		d.add(policy.Denial{Scope: "fs", Operation: "chmod", Target: "/tmp", Source: policy.SourceSeccomp})
		d.add(policy.Denial{Scope: "network", Operation: "connect", Source: policy.SourceSeccomp})
		d.add(policy.Denial{Scope: "childProcess", Operation: "spawn", Source: policy.SourceSeccomp})
		if got := afterHint(d, text+"\nNode.js v24.21.0\n"); len(got) != 3 {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

// A hint requires a failed run whose output ends with an error of Node.
func TestHintConditions(t *testing.T) {
	const last = "Error: EACCES: permission denied, open '/etc/passwd'\n    at x\n\nNode.js v24.0.0\n"
	for _, tc := range []struct {
		name string
		code int
		tail string
		want int
	}{
		{"failed", 1, last, 1},
		{"after other output", 1, "noise\n" + last, 1},
		{"no version", 1, strings.TrimSuffix(last, "Node.js v24.0.0\n"), 0},
		{"no failure", 0, last, 0},
		{"relative to its folder", 1, strings.Replace(last, "/etc/", "../etc/", 1), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := NewDenials(policy.Strict(), "/workspace")
			d.AddHint(tc.code, []byte(tc.tail))
			got, _ := d.Since(nil)
			if len(got) != tc.want || tc.want == 1 && (got[0].Target != "/etc/passwd" || got[0].Rule != "fs.default") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// An observer gets each distinct denial once, whenever it starts.
func TestObserve(t *testing.T) {
	d := NewDenials(policy.Strict(), "/workspace")
	add := func(target string) { d.add(policy.Denial{Scope: "fs", Operation: "read", Target: target}) }
	for _, target := range []string{"/a", "/a", "/b"} {
		add(target)
	}
	var got []string
	d.Observe(func(n policy.Denial) {
		if got = append(got, n.Target); n.Count != 1 {
			t.Errorf("%+v", n)
		}
	})
	for _, target := range []string{"/b", "/c", "/c"} {
		add(target)
	}
	if !slices.Equal(got, []string{"/a", "/b", "/c"}) {
		t.Errorf("observed %q", got)
	}
}
