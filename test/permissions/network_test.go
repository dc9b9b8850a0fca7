package permissions

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// noNetwork denies all IP sockets.
var noNetwork = policy.Permissions{Network: denied}

var tcpUse = []policy.Operation{"fetch", "connect"}

// portsOnly connects by TCP to these ports, and listens on any.
func portsOnly(patterns ...string) policy.Permissions {
	s := allowing(tcpUse, patterns...)
	s.Rules = append(s.Rules, policy.Rule{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:*"}})
	return policy.Permissions{Network: s}
}

// onlyProtocol is Loopback for one protocol.
func onlyProtocol(name string) policy.Permissions {
	return policy.Permissions{Network: allowing([]policy.Operation{"fetch", "connect", "listen"}, name+"://localhost:*")}
}

// Without a network, a guest can create only sockets between its own processes: none of any
// other family or type.
func TestPermissionSockets(t *testing.T) {
	none, loopback := harness.CreatePermitted(t, noNetwork), harness.CreatePermitted(t, policy.Permissions{})
	net := harness.Install(t, none, "net")
	harness.Install(t, loopback, "net")
	for _, line := range strings.Split(harness.Output(t, none, runtime.RunOptions{}, net, "sockets"), "\n") {
		var family, kind int
		var got string
		if _, err := fmt.Sscan(line, &family, &kind, &got); err != nil {
			t.Fatal(err)
		}
		want := "EAFNOSUPPORT"
		switch {
		case family == unix.AF_INET || family == unix.AF_INET6:
			want = "EACCES"
		case family == unix.AF_NETLINK && (kind == unix.SOCK_RAW || kind == unix.SOCK_DGRAM): // needed by getifaddrs
			if want = "ok"; harness.InGVisor() {
				want = "ENOBUFS"
			}
		case family == unix.AF_NETLINK:
			want = "ESOCKTNOSUPPORT"
		case family == unix.AF_UNIX && (kind == unix.SOCK_RDM || kind == unix.SOCK_DCCP || kind == unix.SOCK_PACKET):
			if want = "ESOCKTNOSUPPORT"; harness.InGVisor() {
				want = "EINVAL"
			}
		case family == unix.AF_UNIX:
			want = "ok"
		}
		if got != want {
			t.Errorf("family %d, type %d: %s, want %s", family, kind, got, want)
		}
	}
	for line := range strings.Lines(harness.Output(t, none, runtime.RunOptions{}, net, "pairs")) {
		if isUnix := strings.HasPrefix(line, "1 "); !isUnix && strings.Fields(line)[2] != "EAFNOSUPPORT" {
			t.Errorf("socketpair: %s", line)
		}
	}
	lines, down, up := []string{"2 1 ok", "2 2 ok", "10 1 ok", "10 2 ok", "16 3 ok"}, "down\nEPERM", "up\nEPERM"
	if harness.InGVisor() {
		lines, down, up = lines[:4], "up\nENOTTY", "up\nENOTTY" // flags of devices cannot be set
	}
	open := harness.Output(t, loopback, runtime.RunOptions{}, net, "sockets")
	for _, line := range lines {
		if !strings.Contains("\n"+open+"\n", "\n"+line+"\n") {
			t.Errorf("with Loopback: no %q: the test proves nothing", line)
		}
	}
	for rt, want := range map[*runtime.NodeRuntime]string{none: down, loopback: up} {
		if got := harness.Output(t, rt, runtime.RunOptions{}, net, "device"); got != want {
			t.Errorf("lo is %q, want %q", got, want)
		}
		if got := harness.Output(t, rt, runtime.RunOptions{}, net, "descriptors"); got != "" {
			t.Errorf("a program starts with sockets: %s", got)
		}
	}
}

// Every network API of Node fails as on a machine that forbids it.
func TestPermissionNetworkOfNode(t *testing.T) {
	const code = `
		import net from 'node:net'; import dgram from 'node:dgram'; import http from 'node:http'; import tls from 'node:tls';
		import dns from 'node:dns/promises'; import os from 'node:os'; import { once } from 'node:events'; import { Worker } from 'node:worker_threads';
		const server = net.createServer(s => s.end()), local = net.createServer(s => s.end('hi'));
		await attempt('listen', async () => { server.listen(7100, '127.0.0.1'); await once(server, 'listening') });
		await attempt('connect', () => once(net.connect(7100, '127.0.0.1'), 'connect').then(() => {}));
		await attempt('listen6', async () => { const s = net.createServer().listen(7101, '::1'); await once(s, 'listening') });
		for (const kind of ['udp4', 'udp6']) await attempt(kind, async () => { const s = dgram.createSocket(kind).bind(0); await once(s, 'listening') });
		const web = http.createServer((q, r) => r.end('fine'));
		await attempt('serve', async () => { web.listen(7102); await once(web, 'listening') });
		await attempt('http', async () => { const [r] = await once(http.get('http://127.0.0.1:7102'), 'response'); r.resume() });
		await attempt('fetch', async () => { await (await fetch('http://127.0.0.1:7102')).text() });
		await attempt('tls', () => once(tls.connect(7100, '127.0.0.1').on('error', () => {}), 'connect').then(() => {}));
		await attempt('localhost', async () => { await dns.lookup('localhost') });
		await attempt('lookup', async () => { await dns.lookup('example.com') });
		await attempt('resolve', async () => { const r = new dns.Resolver({ timeout: 100, tries: 1 }); await r.resolve4('example.com') });
		await attempt('interfaces', async () => { os.networkInterfaces() });
		await attempt('worker', () => once(new Worker("const s = require('net').connect(7100, '127.0.0.1'); const say = m => require('worker_threads').parentPort.postMessage(m); s.on('error', e => say(e.code)).on('connect', () => say('ok'))", { eval: true }), 'message').then(m => m[0]));
		await attempt('unix', async () => { local.listen('/tmp/unix'); await once(local, 'listening'); await once(net.connect('/tmp/unix'), 'data') });
		await attempt('abstract', async () => { const l = net.createServer(s => s.end('hi')).listen('\0gaol-permission'); await once(l, 'listening'); await once(net.connect('\0gaol-permission'), 'data') });`
	interfaces := "ok"
	if harness.InGVisor() {
		interfaces = "ERR_SYSTEM_ERROR"
	}
	got := attempts(t, harness.CreatePermitted(t, noNetwork), code, runtime.RunOptions{})
	wantSame(t, "denied", map[string]string{
		"listen": "EACCES", "connect": "EACCES", "listen6": "EACCES", "udp4": "EACCES", "udp6": "EACCES", "serve": "EACCES",
		"http": "EACCES", "fetch": "EACCES", "tls": "EACCES", "localhost": "ok", "lookup": "EAI_AGAIN", "resolve": "ECONNREFUSED",
		"interfaces": interfaces, "worker": "EACCES", "unix": "ok", "abstract": "ok",
	}, got)
	got = attempts(t, harness.CreatePermitted(t, policy.Permissions{}), code, runtime.RunOptions{})
	wantSame(t, "by default", map[string]string{
		"listen": "ok", "connect": "ok", "listen6": "ok", "udp4": "ok", "udp6": "ok", "serve": "ok",
		"http": "ok", "fetch": "ok", "tls": "ok", "localhost": "ok", "lookup": "EAI_AGAIN", "resolve": "ECONNREFUSED",
		"interfaces": interfaces, "worker": "ok", "unix": "ok", "abstract": "ok",
	}, got)
}

// Each runtime has its own loopback device, and no other.
func TestPermissionLoopback(t *testing.T) {
	a, b := harness.CreatePermitted(t, policy.Permissions{}), harness.CreatePermitted(t, policy.Permissions{})
	net := harness.Install(t, a, "net")
	harness.Install(t, b, "net")
	all := map[string]string{"tcp4": "ok", "tcp6": "ok", "udp4": "ok", "udp6": "ok"}
	wantSame(t, "in one program", all, answers(harness.Output(t, a, runtime.RunOptions{}, net, "local")))
	away := map[string]string{"metadata": "ENETUNREACH", "multicast": "ENETUNREACH", "tcp4": "ENETUNREACH", "tcp6": "ENETUNREACH", "udp4": "ENETUNREACH", "udp6": "ENETUNREACH"}
	wantSame(t, "outside", away, answers(harness.Output(t, a, runtime.RunOptions{}, net, "outside", "80")))

	harness.StartCommand(t, a, "node", "-e", `require('net').createServer(s => s.end()).listen(7103, '127.0.0.1', () => console.log('up'))`)
	if got := harness.Output(t, a, runtime.RunOptions{}, net, "get", "7103"); got != "ok" {
		t.Errorf("from another run: %s", got)
	}
	if got := harness.Output(t, b, runtime.RunOptions{}, net, "get", "7103"); got != "ECONNREFUSED" {
		t.Errorf("from another runtime: %s", got)
	}
	got := attempts(t, a, `
		import { execFileSync } from 'node:child_process'; import net from 'node:net'; import { once } from 'node:events';
		import { execFile } from 'node:child_process'; import { promisify } from 'node:util';
		const s = net.createServer(s => s.end()).listen(7104); await once(s, 'listening');
		await attempt('child', async () => (await promisify(execFile)(process.argv[2], ['get', '7104'])).stdout.trim());`, runtime.RunOptions{Args: []string{net}})
	wantSame(t, "from a child", map[string]string{"child": "ok"}, got)
}

// streams are the ways of testdata/net.c that connect by TCP.
var streams = []string{"connect", "any", "other", "ipv6", "mapped", "polled", "twice", "fastopen"}

// unseen are those of them that Landlock does not check.
var unseen = []string{"sendto", "sendmsg", "sendmmsg", "high"}

// TCP connects to the listed ports, and to no other in any way.
func TestPermissionPorts(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, portsOnly("tcp://localhost:7200"))
	some, open := harness.CreatePermitted(t, portsOnly("tcp://localhost:7200")), harness.CreatePermitted(t, policy.Permissions{})
	net := harness.Install(t, some, "net")
	harness.Install(t, open, "net")

	free := answers(harness.Output(t, open, runtime.RunOptions{}, net, "ways", "7201"))
	for _, way := range append(append([]string{"udp"}, streams...), unseen...) {
		if free[way] != "ok reached" {
			t.Errorf("with Loopback: %s: %s: the test proves nothing", way, free[way])
		}
	}
	listed := answers(harness.Output(t, some, runtime.RunOptions{}, net, "ways", "7200"))
	other := answers(harness.Output(t, some, runtime.RunOptions{}, net, "ways", "7201"))
	for _, way := range streams {
		if listed[way] != "ok reached" || other[way] != "EACCES -" {
			t.Errorf("%s: to a listed port %s, to another %s", way, listed[way], other[way])
		}
	}
	for _, way := range unseen { // refused for every port
		if listed[way] != "EOPNOTSUPP -" || other[way] != "EOPNOTSUPP -" {
			t.Errorf("%s: to a listed port %s, to another %s", way, listed[way], other[way])
		}
	}
	noProtocol := "EPROTONOSUPPORT -"
	for way, want := range map[string]string{
		"mptcp": noProtocol, "mptcp-flags": noProtocol, "smc-tcp": noProtocol, "smc": "EAFNOSUPPORT -",
		"sctp": noProtocol, "sctp-packets": "EPERM -", "udp": "EACCES -", "udplite": "EACCES -", "io_uring": "EPERM -",
		"unspecified": "ok -", "flagged": "ok -",
	} {
		if other[way] != want {
			t.Errorf("%s: %s, want %s", way, other[way], want)
		}
	}
	for way, answer := range other {
		if strings.HasSuffix(answer, "reached") {
			t.Errorf("%s reaches a port that is not listed", way)
		}
	}
	for port, want := range map[string]string{"7200": "ENETUNREACH", "7201": "EACCES"} {
		got := answers(harness.Output(t, some, runtime.RunOptions{}, net, "outside", port))
		wantSame(t, "outside, port "+port, map[string]string{
			"tcp4": want, "tcp6": want, "metadata": want, "udp4": "EACCES", "udp6": "EACCES", "multicast": "EACCES",
		}, got)
	}
}

// Node's clients get the same errors.
func TestPermissionPortsOfNode(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, portsOnly("tcp://localhost:7300"))
	got := attempts(t, harness.CreatePermitted(t, portsOnly("tcp://localhost:7300")), `
		import net from 'node:net'; import http from 'node:http'; import dgram from 'node:dgram'; import { once } from 'node:events';
		for (const port of [7300, 7301]) {
			const web = http.createServer((q, r) => r.end('fine')).listen(port, '127.0.0.1'); await once(web, 'listening');
			await attempt('connect ' + port, () => once(net.connect(port, '127.0.0.1'), 'connect').then(() => {}));
			await attempt('fetch ' + port, () => fetch('http://127.0.0.1:' + port).then(r => r.text()));
		}
		await attempt('udp', () => once(dgram.createSocket('udp4').bind(0), 'listening').then(() => {}));`, runtime.RunOptions{})
	wantSame(t, "ports", map[string]string{
		"connect 7300": "ok", "fetch 7300": "fine", "connect 7301": "EACCES", "fetch 7301": "EACCES", "udp": "EACCES",
	}, got)
}

// TCP can be allowed without UDP, and UDP without TCP.
func TestPermissionProtocols(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock)
	rt := harness.CreatePermitted(t, policy.Permissions{Network: allowing([]policy.Operation{"listen"}, "tcp://localhost:*")})
	net := harness.Install(t, rt, "net")
	got := answers(harness.Output(t, rt, runtime.RunOptions{}, net, "ways", "7401"))
	for _, way := range streams {
		if got[way] != "EACCES -" {
			t.Errorf("only listening: %s: %s", way, got[way])
		}
	}
	for name, want := range map[string]map[string]string{
		"tcp": {"tcp4": "ok", "tcp6": "ok", "udp4": "EACCES", "udp6": "EACCES"},
		"udp": {"tcp4": "EACCES", "tcp6": "EACCES", "udp4": "ok", "udp6": "ok"},
	} {
		rt := harness.CreatePermitted(t, onlyProtocol(name))
		net := harness.Install(t, rt, "net")
		wantSame(t, name, want, answers(harness.Output(t, rt, runtime.RunOptions{}, net, "local")))
		ways := answers(harness.Output(t, rt, runtime.RunOptions{}, net, "ways", "7400"))
		for _, way := range append(streams, unseen...) {
			if isTCP := name == "tcp"; strings.HasSuffix(ways[way], "reached") != isTCP {
				t.Errorf("%s: %s: %s", name, way, ways[way])
			}
		}
		if isUDP := name == "udp"; strings.HasSuffix(ways["udp"], "reached") != isUDP {
			t.Errorf("%s: udp: %s", name, ways["udp"])
		}
	}
}

// A run with fewer ports than its runtime is limited to them even on a socket that another
// run passes to it. A run that may not create sockets can use one that it is passed:
// communicating runs of a runtime share their files and descriptors.
func TestPermissionPassedSocket(t *testing.T) {
	rt := harness.CreatePermitted(t, policy.Permissions{})
	pass := harness.Install(t, rt, "pass")
	for _, tc := range []struct {
		name, want, seen string
		p                policy.Permissions
	}{
		{"no more ports", "ok\nEACCES", "-", portsOnly("tcp://localhost:7002")},
		{"no network", "EACCES\nok", "reached", policy.Permissions{Network: denied}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "no more ports" {
				harness.Require(t, runtime.FeatureLandlock, tc.p)
			}
			at := "/tmp/" + strings.ReplaceAll(tc.name, " ", "-")
			giver := harness.StartCommand(t, rt, pass, "give", at)
			if got := harness.Output(t, rt, runtime.RunOptions{Permissions: tc.p}, pass, "take", at); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got := giver.Next(t); got != tc.seen {
				t.Errorf("the server was %s", got)
			}
		})
	}
}

// Create rejects rules that cannot be enforced, by their place.
func TestPermissionNetworkRefused(t *testing.T) {
	const all = "tcp://localhost:*"
	allow := func(ops ...policy.Operation) func(...string) policy.Scope {
		return func(patterns ...string) policy.Scope { return allowing(ops, patterns...) }
	}
	for _, tc := range []struct {
		name, place string
		scope       policy.Scope
	}{
		{"UDP to an address outside", "network.rules[0].patterns[0]", allow("fetch", "connect")("udp://192.0.2.1:53")},
		{"second pattern", "network.rules[0].patterns[1]", allow("fetch", "connect", "listen")(all, "udp://example.com:*")},
		{"a group of hosts", "network.rules[0].patterns[0]", allow("fetch", "connect")("tcp://224.0.0.0/4:80")},
		{"listen outside", "network.rules[0].patterns[0]", allow("listen")("tcp://example.com:443")},
		{"loopback's address", "network.rules[0].patterns[0]", allow("fetch", "connect", "listen")("tcp://127.0.0.1:80")},
		{"listen on a port", "network.rules[0]", allow("listen")("tcp://localhost:80")},
		{"connect without listen", "network.rules[0]", allow("fetch", "connect")(all)},
		{"fetch without connect", "network.rules[0]", allow("fetch", "listen")(all)},
		{"connect without fetch", "network.rules[0]", allow("connect", "listen")(all)},
		{"udp on a port", "network.rules[0]", allow("fetch", "connect", "listen")("udp://localhost:53")},
		{"udp that does not listen", "network.rules[0]", allow("fetch", "connect")("udp://localhost:*")},
		{"all ports but one", "network.rules[1]", policy.Scope{Rules: []policy.Rule{
			{Mode: policy.Allow, Operations: []policy.Operation{"fetch", "connect", "listen"}, Patterns: []string{all}},
			{Mode: policy.Deny, Operations: tcpUse, Patterns: []string{"tcp://localhost:22"}},
		}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := refusal(t, policy.Permissions{Network: tc.scope})
			if err.Place != tc.place || err.Nearest == "" {
				t.Errorf("place %q, nearest %q, %v", err.Place, err.Nearest, err)
			}
		})
	}
}
