package main

import (
	"slices"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
)

// socket returns a denial of a socket, as seccomp reports it.
func socket(target string, count int64) runtime.Denial {
	return runtime.Denial{Scope: "network", Operation: "socket", Target: target, Rule: "network.default", Count: count, Source: runtime.SourceSeccomp}
}

// file returns a denial of an operation on a file, as the program's error reports it.
func file(op policy.Operation, target string) runtime.Denial {
	return runtime.Denial{Scope: "fs", Operation: op, Target: target, Rule: "fs.default", Count: 1, Source: runtime.SourceStderr}
}

// network returns a denial of an operation of the network, as the program's error reports it.
func network(op policy.Operation, target string) runtime.Denial {
	return runtime.Denial{Scope: "network", Operation: op, Target: target, Rule: "network.default", Count: 1, Source: runtime.SourceStderr}
}

func TestDenied(t *testing.T) {
	const tcp = "AF_INET6 SOCK_STREAM"
	spawn := runtime.Denial{Scope: "childProcess", Operation: "spawn", Rule: "childProcess.default", Count: 1, Source: runtime.SourceSeccomp}
	for _, tc := range []struct {
		name   string
		args   []string
		denial runtime.Denial
		want   string // the line without "gaol: denied"
	}{
		{"a socket, for whatever it was", []string{"--preset", "strict"}, socket(tcp, 3), ": network socket AF_INET6 SOCK_STREAM (network.default), 3 times"},
		{"listen", []string{"--preset", "strict"}, network("listen", "tcp://localhost:80"),
			", reported by the program: network listen tcp://localhost:80 (network.default); allow with --allow-net 'tcp://localhost:*'"},
		{"udp", []string{"--preset", "strict"}, network("listen", "udp://localhost:*"),
			", reported by the program: network listen udp://localhost:* (network.default); allow with --allow-net 'udp://localhost:*'"},
		{"connect", []string{"--preset", "strict"}, network("connect", "tcp://127.0.0.1:3000"),
			", reported by the program: network connect tcp://127.0.0.1:3000 (network.default); allow with --allow-net 'tcp://localhost:*', or --host-port 3000 if the server runs on this machine"},
		{"a port of the host", nil, runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://[::1]:3000", Rule: "hostPorts", Count: 1, Source: runtime.SourceStderr},
			", reported by the program: network connect tcp://[::1]:3000 (hostPorts); allow with --host-port 3000 if the server runs on this machine"},
		{"a name's private address", []string{"--allow-net", "api.test"},
			runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://api.test:80", Address: "10.0.0.5", Rule: "network.default", Count: 1, Source: runtime.SourceEgress},
			": network connect tcp://api.test:80 resolves to 10.0.0.5, a private address or one of the host's own (network.default); allow with --allow-net 10.0.0.5:80"},
		{"a name's address that no rule opens", []string{"--allow-net", "api.test"},
			runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://api.test:80", Address: "127.0.0.1", Rule: "network.default", Count: 1, Source: runtime.SourceEgress},
			": network connect tcp://api.test:80 resolves to 127.0.0.1, a private address or one of the host's own (network.default)"},
		{"a unix socket beside a mount", nil, runtime.Denial{Scope: "network", Operation: "socket", Target: "AF_UNIX SOCK_STREAM", Rule: "mounts", Count: 1, Source: runtime.SourceSeccomp},
			": network socket AF_UNIX SOCK_STREAM (mounts); allow with --unix-sockets, or mount the folder copy-on-write (SOURCE:TARGET:cow)"},
		{"network in permissions", []string{"--permissions", `{"network":"deny"}`}, network("dns", "dns://a.test"),
			`, reported by the program: network dns dns://a.test (network.default); allow with the rule {"mode":"allow","patterns":["tcp://a.test:*"]} at the end of network in --permissions`},
		{"a port", []string{"--permissions", `{"network":{"rules":[{"mode":"allow","operations":["listen"],"patterns":["tcp://localhost:*"]}]}}`},
			runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://[::1]:80", Rule: "network.default", Count: 1, Source: runtime.SourceStderr},
			", reported by the program: network connect tcp://[::1]:80 (network.default); allow with the rule {\"mode\":\"allow\",\"patterns\":[\"tcp://localhost:*\"]} at the end of network in --permissions"},
		{"a host outside", []string{"--allow-net", "udp://localhost:*"},
			runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://1.1.1.1:80", Rule: "network.default", Count: 1, Source: runtime.SourceStderr},
			", reported by the program: network connect tcp://1.1.1.1:80 (network.default); allow with --allow-net 1.1.1.1:80"},
		{"a private address", nil,
			runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://[fd00::1]:80", Rule: "network.default", Count: 1, Source: runtime.SourceEgress},
			": network connect tcp://[fd00::1]:80 (network.default); allow with --allow-net '[fd00::1]:80'"},
		{"another server name", nil,
			runtime.Denial{Scope: "network", Operation: "connect", Target: `tcp://a.test:443: server name "b.test"`, Rule: "network.default", Count: 1, Source: runtime.SourceEgress},
			`: network connect "tcp://a.test:443: server name \"b.test\"" (network.default)`},
		{"a limit", nil,
			runtime.Denial{Scope: "network", Operation: "connect", Target: "tcp://a.test:443", Rule: "limits.connections", Count: 1, Source: runtime.SourceEgress},
			": network connect tcp://a.test:443 (limits.connections)"},
		{"a name", []string{"--allow-net", "tcp://localhost:*"},
			runtime.Denial{Scope: "network", Operation: "dns", Target: "dns://registry.npmjs.org", Rule: "network.default", Count: 1, Source: runtime.SourceStderr},
			", reported by the program: network dns dns://registry.npmjs.org (network.default); allow with --allow-net registry.npmjs.org"},
		{"a kind that nothing allows", nil, socket("AF_INET SOCK_RAW", 1), ": network socket AF_INET SOCK_RAW (network.default)"},
		{"allowed already", []string{"--preset", "open"}, socket(tcp, 1), ": network socket AF_INET6 SOCK_STREAM (network.default)"},
		{"spawn", []string{"--preset", "strict"}, spawn, `: childProcess spawn (childProcess.default); allow with "childProcess": "allow" in --permissions`},
		{"read", []string{"--preset", "strict"}, file("read", "/etc/hosts"),
			`, reported by the program: fs read /etc/hosts (fs.default); allow with the rule {"mode":"allow","operations":["read"],"paths":["/etc/hosts"]} at the end of fs in --permissions`},
		{"readdir", []string{"--preset", "strict"}, file("readdir", "/etc"),
			`, reported by the program: fs readdir /etc (fs.default); allow with the rule {"mode":"allow","operations":["read","readdir"],"paths":["/etc/**"]} at the end of fs in --permissions`},
		{"write where chmod goes with it", []string{"--preset", "workspace"}, file("write", "/tmp/x"),
			`, reported by the program: fs write /tmp/x (fs.default); allow with the rule {"mode":"allow","operations":["write","create_dir","rm","rename","symlink","chmod","truncate"],"paths":["/tmp/**"]} at the end of fs in --permissions`},
		{"a folder, by audit", []string{"--preset", "workspace"},
			runtime.Denial{Scope: "fs", Operation: "create_dir", Target: "/tmp", Rule: "fs.rules[0]", Count: 2, Source: runtime.SourceAudit},
			`: fs create_dir /tmp (fs.rules[0]), 2 times; allow with the rule {"mode":"allow","operations":["write","create_dir","rm","rename","symlink","chmod","truncate"],"paths":["/tmp/**"]} at the end of fs in --permissions`},
		{"a file or its folder, by audit", []string{"--preset", "workspace"},
			runtime.Denial{Scope: "fs", Operation: "write", Target: "/tmp", Rule: "fs.rules[0]", Count: 1, Source: runtime.SourceAudit}, ": fs write /tmp (fs.rules[0])"},
		{"control characters in a name", []string{"--preset", "strict"}, file("read", "/a\x1b[31m\u009b "), `, reported by the program: fs read "/a\x1b[31m\u009b " (fs.default)`},
		{"a pattern for a name", []string{"--preset", "strict"}, file("read", "/a*"), `, reported by the program: fs read /a* (fs.default)`},
		{"allowed by default", nil, file("read", "/a"), `, reported by the program: fs read /a (fs.default)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := fake{guest: returns(runtime.Result{ExitCode: 1, Denials: []runtime.Denial{tc.denial}})}
			args := append([]string{"run", "-e", "1"}, tc.args...)
			if got, want := f.call(t, "", args...), "gaol: denied"+tc.want+"\n"; got.code != 1 || got.stderr != want {
				t.Errorf("standard error has %q, want %q", got.stderr, want)
			}
			if got := f.call(t, "", append(args, "--json")...); got.stderr != "" {
				t.Errorf("with --json, standard error has %q", got.stderr)
			}
			f.guest = returns(runtime.Result{Denials: []runtime.Denial{tc.denial}})
			if got := f.call(t, "", args...); got.stderr != "" {
				t.Errorf("of a program that succeeded: %q", got.stderr)
			}
		})
	}
}

func TestLimitReached(t *testing.T) {
	f := fake{guest: returns(runtime.Result{ExitCode: 1, Denials: []runtime.Denial{
		{Scope: policy.Limits, Operation: "disk", Target: "1 MiB", Rule: "limits.diskBytes", Count: 1, Source: runtime.SourceLimits},
		{Scope: policy.Limits, Operation: "files", Target: "100", Rule: "limits.files", Count: 1, Source: runtime.SourceStderr},
		{Scope: policy.Limits, Operation: "memory", Target: "256 MiB, of which files in memory take 60 MiB", Rule: "limits.memoryBytes", Count: 1, Source: runtime.SourceLimits},
	}})}
	want := "gaol: limit reached: disk 1 MiB (limits.diskBytes); allow with a higher --disk\n" +
		"gaol: limit reached, reported by the program: files 100 (limits.files); allow with a higher --files\n" +
		"gaol: limit reached: memory 256 MiB, of which files in memory take 60 MiB (limits.memoryBytes); " +
		"allow with a higher --memory, or a --disk above 64 MiB and a quarter of the memory, which keeps files on disk\n"
	if got := f.call(t, "", "run", "-e", "1"); got.stderr != want {
		t.Errorf("standard error has %q, want %q", got.stderr, want)
	}
}

// The advice for a socket to another host is no rule for localhost.
func TestDeniedExternal(t *testing.T) {
	name := runtime.Denial{Scope: "network", Operation: "dns", Target: "dns://example.com", Rule: "network.default", Count: 1, Source: runtime.SourceStderr}
	f := fake{guest: returns(runtime.Result{ExitCode: 1, Denials: []runtime.Denial{socket("AF_INET SOCK_DGRAM", 2), name}})}
	want := "gaol: denied: network socket AF_INET SOCK_DGRAM (network.default), 2 times\n" +
		"gaol: denied, reported by the program: network dns dns://example.com (network.default); allow with --allow-net example.com\n"
	if got := f.call(t, "", "run", "-e", "1"); got.stderr != want {
		t.Errorf("standard error has %q, want %q", got.stderr, want)
	}
}

func TestDeniedLimit(t *testing.T) {
	for _, tc := range []struct {
		denials   int
		truncated bool
		lines     int
		last      string
	}{
		{5, false, 5, "AF_INET SOCK_RAW"},
		{6, false, 5, "gaol: denied: 2 more; --json lists them"},
		{64, true, 5, "gaol: denied: more than 60 more; --json lists 64"},
	} {
		res := runtime.Result{ExitCode: 1, Denials: slices.Repeat([]runtime.Denial{socket("AF_INET SOCK_RAW", 1)}, tc.denials)}
		res.Truncated.Denials = tc.truncated
		f := fake{guest: returns(res)}
		lines := strings.Split(strings.TrimSuffix(f.call(t, "", "run", "-e", "1").stderr, "\n"), "\n")
		if len(lines) != tc.lines || !strings.Contains(lines[len(lines)-1], tc.last) {
			t.Errorf("%d denials: got %q, want %d lines and %q in the last", tc.denials, lines, tc.lines, tc.last)
		}
	}
}
