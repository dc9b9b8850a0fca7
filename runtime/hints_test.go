package runtime

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
)

// TestHints: what Node said, as it was copied from runs.
func TestHints(t *testing.T) {
	out := policy.Strict()
	out.FS = policy.Scope{Rules: []policy.Rule{
		{Mode: policy.Allow, Operations: []policy.Operation{"read", "readdir"}, Paths: []string{"/workspace/**"}},
		{Mode: policy.Allow, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/workspace/out/**"}},
	}}
	out.Network.Rules = []policy.Rule{{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:*"}}}
	fs := func(op policy.Operation, target string) []Denial {
		return []Denial{{Scope: "fs", Operation: op, Target: target, Rule: "fs.default", Count: 1, Source: SourceStderr}}
	}
	for _, tc := range []struct {
		text string
		want []Denial
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
			[]Denial{{Scope: "network", Operation: "connect", Target: "tcp://127.0.0.1:80", Rule: "network.default", Count: 1, Source: SourceStderr}}},
		{"Error: connect EACCES ::1:80 - Local (:::0)",
			[]Denial{{Scope: "network", Operation: "connect", Target: "tcp://[::1]:80", Rule: "network.default", Count: 1, Source: SourceStderr}}},
		{"Error: connect ECONNREFUSED 127.0.0.1:80", nil},
		{"Error: connect ENETUNREACH 192.0.2.1:80 - Local (0.0.0.0:0)",
			[]Denial{{Scope: "network", Operation: "connect", Target: "tcp://192.0.2.1:80", Rule: "network.default", Count: 1, Source: SourceStderr}}},
		{"  [cause]: Error: getaddrinfo EAI_AGAIN example.com",
			[]Denial{{Scope: "network", Operation: "dns", Target: "dns://example.com", Rule: "network.default", Count: 1, Source: SourceStderr}}},
		{"npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
			[]Denial{{Scope: "network", Operation: "dns", Target: "dns://registry.npmjs.org", Rule: "network.default", Count: 1, Source: SourceStderr}}},
		{"Error: kill EPERM", []Denial{{Scope: "process", Operation: "signal", Rule: "process.default", Count: 1, Source: SourceStderr}}},
		{"<ref *1> Error: spawnSync /bin/sh EACCES", []Denial{{Scope: "childProcess", Operation: "spawn", Target: "/bin/sh", Rule: "childProcess.default", Count: 1, Source: SourceStderr}}},
		{"Error: spawn ls EPERM", []Denial{{Scope: "childProcess", Operation: "spawn", Target: "ls", Rule: "childProcess.default", Count: 1, Source: SourceStderr}}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			d := denials{permissions: out, dir: "/workspace"}
			got, _ := d.list(&Result{ExitCode: 1, Stderr: []byte("\n" + tc.text + "\n    at x\n\nNode.js v24.21.0\n")}, nil)
			if diff := cmp.Diff(append([]Denial{}, tc.want...), append([]Denial{}, got...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			all := policy.Open()
			all.Network = policy.Scope{Default: policy.Allow} // hosts outside, too
			open := denials{permissions: all, dir: "/workspace"}
			if got, _ := open.list(&Result{ExitCode: 1, Stderr: []byte(tc.text + "\nNode.js v24.21.0\n")}, nil); len(got) > 0 {
				t.Errorf("with nothing denied: %+v", got)
			}
		})
	}
}

// TestHintOnce: what the kernel has told of is not told again.
func TestHintOnce(t *testing.T) {
	outside := denials{permissions: policy.Strict(), dir: "/workspace"}
	outside.add(Denial{Scope: "network", Operation: "socket", Target: "AF_INET SOCK_DGRAM", Source: SourceSeccomp})
	if got, _ := outside.list(&Result{ExitCode: 1, Stderr: []byte("npm error getaddrinfo EAI_AGAIN example.com")}, nil); len(got) != 2 {
		t.Errorf("a host outside: got %+v", got)
	}
	for _, text := range []string{
		"Error: EPERM: operation not permitted, chmod '/tmp'",
		"Error: connect EACCES 127.0.0.1:80 - Local (undefined:undefined)",
		"Error: spawnSync ls EPERM",
	} {
		d := denials{permissions: policy.Strict(), dir: "/workspace"}
		d.add(Denial{Scope: "fs", Operation: "chmod", Target: "/tmp", Source: SourceSeccomp})
		d.add(Denial{Scope: "network", Operation: "socket", Target: "AF_INET SOCK_STREAM", Source: SourceSeccomp})
		d.add(Denial{Scope: "childProcess", Operation: "spawn", Source: SourceSeccomp})
		if got, _ := d.list(&Result{ExitCode: 1, Stderr: []byte(text + "\nNode.js v24.21.0\n")}, nil); len(got) != 3 {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}
