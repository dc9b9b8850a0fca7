package gvisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
)

// Addresses of the tests' internet.
var (
	publicV4 = netip.MustParseAddr("93.184.215.14")
	publicV6 = netip.MustParseAddr("2606:2800:220:1::14")
	otherV4  = netip.MustParseAddr("151.101.1.6")
)

// serveInternet serves names, and HTTP on all addresses.
func serveInternet(t *testing.T) {
	t.Helper()
	internettest.ServeNames(t, map[string][]netip.Addr{"api.example.com": {publicV4, publicV6}, "six.example.com": {publicV6}, "other.test": {otherV4}})
	l, err := net.Listen("tcp", "[::]:80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "served %s by %s", r.Host, r.Context().Value(http.LocalAddrContextKey))
	})}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Close(); serving.Wait() })
}

// attempts returns the results of connections and questions.
const attempts = `
	const dgram = require('node:dgram'), net = require('node:net'), dns = require('node:dns').promises;
	const fetched = async (url) => {
		try { return await (await fetch(url, { headers: { connection: 'close' } })).text(); }
		catch (err) { return err.cause?.code ?? err.message; }
	};
	const connected = (port, host) => new Promise((done) => {
		const c = net.connect(port, host).on('data', (text) => { c.destroy(); done(String(text)); }).on('error', (err) => done(err.code));
	});
	const sent = (port, host) => new Promise((done) => {
		const s = dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4');
		const end = (result) => { s.close(); done(result); };
		s.once('message', (text) => end(String(text))).once('error', (err) => end(err.code));
		s.connect(port, host, (err) => err ? end(err.code) : s.send('text'));
	});
	const servers = ['127.0.0.1', '::1'].map((host) => net.createServer((c) => c.end('own')).listen(8080, host));
	const all = {};
	(async () => {
		for (const url of ['http://api.example.com/', 'http://six.example.com/', 'http://other.test/', 'http://unknown.test/', 'http://151.101.1.7/',
			'http://[2606:2800:220:1::15]/', 'http://151.101.1.6/', 'http://151.101.1.6:81/', 'http://localhost:8080/', 'http://10.0.2.3/'])
			all[url] = await fetched(url);
		for (const [port, host] of [[8080, '127.0.0.1'], [8080, '::1'], [8081, '127.0.0.1'], [8081, '::1'], [8080, '127.9.9.9'], [8080, '::ffff:127.0.0.1'], [80, '10.0.2.3']])
			all['tcp ' + host + ' ' + port] = await connected(port, host);
		for (const [port, host] of [[53, '151.101.1.6'], [123, '151.101.1.6'], [53, '2606:2800:220:1::14'], [9, '127.0.0.1'], [9, '::1'], [9, '10.0.2.3']])
			all['udp ' + host + ' ' + port] = await sent(port, host);
		for (const name of ['api.example.com', 'unknown.test'])
			all['addresses of ' + name] = await dns.lookup(name, { all: true }).catch((err) => err.code);
		const question = Buffer.from('002100070100000100000000000003617069076578616d706c6503636f6d0000010001', 'hex'); // A of api.example.com
		all['answers by tcp'] = await new Promise((done) => {
			const c = net.connect(53, '10.0.2.3').on('error', (err) => done(err.code)).on('data', (reply) => { c.destroy(); done(reply.readUInt16BE(8)); });
			c.write(question);
		});
		all.resolve = await dns.resolve4('api.example.com').catch((err) => err.code);
		__return(all);
		process.exit();
	})();`

// Egress is the same as in native jails, except that denied connections are reset: gVisor does not notify of system calls, so only
// egress decides about them.
func TestEgress(t *testing.T) {
	needRunsc(t)
	serveInternet(t)
	for name, allowed := range map[string]string{"without localhost": "api.example.com,six.example.com,151.101.1.6", "localhost": "api.example.com,localhost:8080"} {
		for _, launcher := range []string{"zygote", "exec"} {
			t.Run(name+"/"+launcher, func(t *testing.T) {
				var args []string
				for _, pattern := range strings.Split(allowed, ",") {
					args = append(args, "--allow-net", pattern)
				}
				args = append(args, "--launcher", launcher, "-e", attempts)
				want, got := runIn(t, "native", args...)["value"].(object), runIn(t, "gvisor", args...)["value"].(object)
				for name, value := range want {
					if value != "EACCES" {
						continue
					}
					if want[name] = "ECONNRESET"; strings.HasPrefix(name, "udp ") {
						want[name] = "ECONNREFUSED"
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-native +gvisor:\n%s", diff)
				}
			})
		}
	}
}

// Runs share a network, and each is refused what its own permissions deny.
func TestEgressOfRuns(t *testing.T) {
	serveInternet(t)
	allow := func(hosts ...string) policy.Permissions {
		return policy.Permissions{Network: policy.Scope{Default: policy.Deny, Rules: []policy.Rule{{Mode: policy.Allow, Patterns: hosts}}}}
	}
	rt := create(t, runtime.Options{Permissions: allow("tcp://api.example.com:80", "tcp://151.101.1.6:80", "tcp://localhost:*")})
	const fetchBoth = `Promise.all(['http://api.example.com/', 'http://151.101.1.6/'].map((url) => fetch(url, { headers: { connection: 'close' } })
		.then((res) => res.status, (err) => err.cause.code))).then(__return)`
	var both sync.WaitGroup
	for want, o := range map[string]runtime.RunOptions{
		"[200,200]":          {},
		`[200,"ECONNRESET"]`: {Permissions: allow("tcp://api.example.com:80", "tcp://localhost:*")},
	} {
		both.Go(func() {
			for range 3 {
				res, err := rt.Run(t.Context(), fetchBoth, o)
				if err != nil || string(res.Value) != want {
					t.Errorf("%v: %+v, want %s", err, res, want)
				}
			}
		})
	}
	both.Wait()
	_, err := rt.Run(t.Context(), fetchBoth, runtime.RunOptions{Permissions: allow("tcp://api.example.com:80")})
	if u, ok := errors.AsType[*runtime.UnsupportedError](err); !ok || u.Feature != runtime.FeatureLocalhost {
		t.Errorf("a run without localhost: %v", err)
	}
}

// A guest that connects to the listeners themselves is refused. /proc/net shows it their ports.
func TestListenersOfAgent(t *testing.T) {
	serveInternet(t)
	rt := create(t, runtime.Options{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Allow}}})
	res := harness.Run(t, rt, `
		const fs = require('node:fs'), net = require('node:net');
		const ports = (file, host) => fs.readFileSync(file, 'utf8').split('\n').map((line) => line.trim().split(/\s+/)).filter((f) => f[3] === '0A')
			.map((f) => [parseInt(f[1].split(':')[1], 16), host]);
		Promise.all([...ports('/proc/net/tcp', '127.0.0.1'), ...ports('/proc/net/tcp6', '::1')].map(([port, host]) => new Promise((done) => {
			const c = net.connect(port, host).on('error', (err) => done(err.code)).on('close', () => done('closed')).on('data', () => done('data'));
			c.write('text');
		}))).then(__return)`, runtime.RunOptions{})
	var list []string
	if err := json.Unmarshal(res.Value, &list); err != nil || len(list) < 3 || res.Usage.Network != (runtime.NetworkUsage{}) {
		t.Fatalf("%s, %v, %+v", res.Value, err, res.Usage.Network)
	}
	for _, got := range list {
		if got != "ECONNRESET" && got != "ECONNREFUSED" {
			t.Errorf("a listener: %s", got)
		}
	}
}

// The host connects to servers of a guest with external hosts, also where the guest itself may not connect.
func TestDialWithEgress(t *testing.T) {
	rt := create(t, runtime.Options{Permissions: policy.Permissions{Network: policy.Scope{Default: policy.Deny, Rules: []policy.Rule{
		{Mode: policy.Allow, Patterns: []string{"tcp://api.example.com:80"}},
		{Mode: policy.Allow, Operations: []policy.Operation{"listen"}, Patterns: []string{"tcp://localhost:8080"}},
	}}}})
	defer harness.StartProgram(t, rt, `require('node:net').createServer((c) => c.end('served')).listen(8080, () => console.log('ready'))`)()
	for _, network := range []string{"tcp4", "tcp6"} {
		c, err := rt.Dial(t.Context(), network, 8080)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if text, err := io.ReadAll(c); string(text) != "served" || err != nil {
			t.Errorf("%s: %q, %v", network, text, err)
		}
	}
	res := harness.Run(t, rt, `require('node:net').connect(8080, '127.0.0.1').on('error', (err) => __return(err.code))`, runtime.RunOptions{})
	if string(res.Value) != `"ECONNREFUSED"` {
		t.Errorf("the guest: %s", res.Value)
	}
}
