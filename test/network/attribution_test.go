package network

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
)

// keepFetching starts a program that fetches a URL again and again. It returns after the first response.
func keepFetching(t *testing.T, rt *runtime.NodeRuntime, url string) (stop func()) {
	t.Helper()
	return harness.StartProgram(t, rt, fmt.Sprintf(`
for (let first = true;; first = false) {
	await fetch(%q).then(r => r.text());
	if (first) console.log('ready');
	await new Promise(done => setTimeout(done, 10));
}`, url))
}

// A run with fewer rights runs beside one with more, and each has its own: hosts, denials,
// and what it has used.
func TestNarrowRunBesideWideRun(t *testing.T) {
	harness.Require(t, runtime.FeatureLocalhost)
	names := serveInternet(t)
	eachLauncher(t, `"allow"`, func(t *testing.T, rt *runtime.NodeRuntime) {
		wide := keepFetching(t, rt, "http://other.test/")
		defer wide()
		asked := names.Asked("www.example.com")
		narrow := permissions(t, `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:80"]}]}`)
		for range 5 {
			res := harness.Run(t, rt, fetching, runtime.RunOptions{
				Args:        []string{"http://api.example.com/", "http://other.test/", "http://www.example.com/", "http://151.101.1.6/", "http://api.example.com:443/", "http://198.18.0.1/", "http://198.18.0.2/"},
				Permissions: narrow,
			})
			var got map[string]string
			if err := json.Unmarshal(res.Value, &got); err != nil {
				t.Fatalf("value %s, stderr %s", res.Value, res.Stderr)
			}
			for url, text := range got {
				if isServed(text) != (url == "http://api.example.com/") && text != "served api.example.com by 93.184.215.14:80" {
					t.Errorf("%s: %s", url, text)
				}
			}
			if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Target == "dns://www.example.com" }) {
				t.Errorf("denials %+v", res.Denials)
			}
			if got["http://151.101.1.6/"] != "EACCES" || got["http://api.example.com:443/"] != "EACCES" {
				t.Errorf("got %v", got)
			}
		}
		if n := names.Asked("www.example.com"); n != asked {
			t.Errorf("%d questions about a denied name left the sandbox", n-asked)
		}
	})
}

// The localhost of a run that may not use it is closed, in both directions.
func TestNarrowRunWithoutLocalhost(t *testing.T) {
	harness.Require(t, runtime.FeatureLocalhost)
	serveInternet(t)
	const server = `
import http from 'node:http';
http.createServer((q, s) => s.end('served by wide')).listen(PORT, '127.0.0.1', () => console.log('ready'));`
	const dial = `
import net from 'node:net';
const got = {};
for (const host of ['127.0.0.1', '0.0.0.0', '::ffff:127.0.0.1', '127.9.9.9', '::1']) {
	await new Promise(done => net.connect(PORT, host, () => done(got[host] = 'connected')).on('error', err => done(got[host] = err.code)));
}
__return(got);`
	eachLauncher(t, `"allow"`, func(t *testing.T, rt *runtime.NodeRuntime) {
		stop := harness.StartProgram(t, rt, strings.ReplaceAll(server, "PORT", "3000"))
		defer stop()
		narrow := permissions(t, `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:80"]}]}`)
		res := harness.Run(t, rt, strings.ReplaceAll(dial, "PORT", "3000"), runtime.RunOptions{Permissions: narrow})
		var got map[string]string
		if err := json.Unmarshal(res.Value, &got); err != nil {
			t.Fatalf("value %s, stderr %s", res.Value, res.Stderr)
		}
		for host, outcome := range got {
			if outcome != "EACCES" {
				t.Errorf("%s: %s", host, outcome)
			}
		}
		if len(got) != 5 {
			t.Errorf("got %v", got)
		}
	})
}

// A denied connect fails immediately with EACCES, and is a denial of its run.
func TestDeniedConnect(t *testing.T) {
	needBPF(t)
	serveInternet(t)
	const code = `
import net from 'node:net';
import dgram from 'node:dgram';
const got = {};
const dial = (host, port) => new Promise(done => net.connect(port, host, function () { this.destroy(); done(got[host + ' ' + port] = 'connected'); }).on('error', err => done(got[host + ' ' + port] = err.code + ' ' + err.syscall)));
await dial('93.184.215.14', 81);
await dial('2606:2800:220:1::14', 81);
await dial('::ffff:10.1.2.3', 80);
await dial('169.254.169.254', 80);
await dial('93.184.215.14', 80);
await new Promise(done => {
	const s = dgram.createSocket('udp4');
	s.on('error', () => {});
	s.connect(443, '151.101.1.6', err => { got.udp = err?.code ?? 'connected'; s.close(done); });
});
__return(got);`
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://93.184.0.0/16:80"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, res := attempts(t, rt, code)
		for at, want := range map[string]string{
			"93.184.215.14 81": "EACCES connect", "2606:2800:220:1::14 81": "EACCES connect", "::ffff:10.1.2.3 80": "EACCES connect",
			"169.254.169.254 80": "EACCES connect", "93.184.215.14 80": "connected", "udp": "EACCES",
		} {
			if got[at] != want {
				t.Errorf("%s: %s, want %s", at, got[at], want)
			}
		}
		for _, target := range []string{"tcp://93.184.215.14:81", "tcp://[2606:2800:220:1::14]:81", "tcp://10.1.2.3:80", "tcp://169.254.169.254:80"} {
			if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool {
				return d.Target == target && d.Rule == "network.default" && d.Source == runtime.SourceEgress && d.Count == 1
			}) {
				t.Errorf("%s is not in %+v", target, res.Denials)
			}
		}
	})
}

// With rules for external hosts only, a connect to localhost fails immediately with EACCES, and is a denial.
func TestDeniedLocalhost(t *testing.T) {
	needBPF(t)
	serveInternet(t)
	const code = `
import net from 'node:net';
const server = net.createServer().listen(3000, '127.0.0.1');
const dial = host => new Promise(done => net.connect(3000, host, function () { this.destroy(); done('connected'); }).on('error', err => done(err.code)));
const got = {};
for (const host of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', '0.0.0.0']) got[host] = await dial(host);
server.close();
__return(got);`
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, res := attempts(t, rt, code)
		for host, outcome := range got {
			if outcome != "EACCES" {
				t.Errorf("%s: %s", host, outcome)
			}
		}
		want := []runtime.Denial{{Scope: "network", Operation: "connect", Target: "tcp://localhost:3000", Rule: "network.default", Count: 5, Source: runtime.SourceEgress}}
		if !slices.Equal(res.Denials, want) || len(got) != 5 {
			t.Errorf("%v, denials %+v", got, res.Denials)
		}
	})
}

// A run's usage and events are its own, and its limits are.
func TestUsageAndEvents(t *testing.T) {
	serveInternet(t)
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		stop := keepFetching(t, rt, "http://api.example.com/")
		defer stop()
		const code = `
const text = await (await fetch('http://api.example.com/')).text(); // the connection stays open
await fetch('http://api.example.com:81/').catch(() => {});
__return(text);`
		var events []runtime.Connection
		res, err := rt.Run(t.Context(), code, runtime.RunOptions{OnEvent: func(e runtime.Event) {
			if e, ok := e.(runtime.ConnectEvent); ok {
				events = append(events, e.Connection)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		u := res.Usage.Network
		if u.Connections != 1 || u.Denied < 1 || u.Lookups < 1 || u.BytesIn < 100 || u.BytesOut < 50 {
			t.Errorf("used %+v", u)
		}
		if len(events) != 1 {
			t.Fatalf("events %+v", events)
		}
		c := events[0]
		if c.Host != "api.example.com" || c.Address.Addr() != publicV4 && c.Address.Addr() != publicV6 || c.Port != 80 || c.Rule != "network.rules[0]" ||
			c.BytesIn != u.BytesIn || c.BytesOut != u.BytesOut || c.Duration <= 0 || c.Outcome != "closed" {
			t.Errorf("%+v, used %+v", c, u)
		}
	})
}

func TestNetworkLimits(t *testing.T) {
	serveInternet(t)
	internettest.Listen(t, publicV4, 7, func(c net.Conn) {
		_, _ = io.WriteString(c, "hello")
		_, _ = io.Copy(io.Discard, c)
	})
	const code = `
import net from 'node:net';
const n = { open: 0, refused: 0 };
const sockets = await Promise.all(Array.from({ length: 8 }, () => new Promise(done => {
	const s = net.connect(7, '93.184.215.14');
	s.on('data', () => { n.open++; done(s); }).on('close', () => done(s)).on('error', () => { n.refused++; });
})));
for (const s of sockets) s.destroy();
__return({ open: String(n.open), refused: String(n.refused) });`
	for name, limited := range map[string]struct {
		all, run runtime.NetworkLimits
	}{
		"runtime": {all: runtime.NetworkLimits{Connections: 3}},
		"run":     {run: runtime.NetworkLimits{Connections: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			o := harness.Options(runtime.Options{Permissions: permissions(t, `"allow"`), Network: limited.all})
			rt := harness.Create(t, o)
			res := harness.Run(t, rt, code, runtime.RunOptions{Network: limited.run})
			if string(res.Value) != `{"open":"3","refused":"5"}` {
				t.Errorf("value %s, stderr %s", res.Value, res.Stderr)
			}
			if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Rule == "limits.connections" && d.Count == 5 }) {
				t.Errorf("denials %+v", res.Denials)
			}
		})
	}
	t.Run("bytes", func(t *testing.T) {
		rt := harness.Create(t, harness.Options(runtime.Options{Permissions: permissions(t, `"allow"`)}))
		res := harness.Run(t, rt, fetching, runtime.RunOptions{
			Args: []string{"http://93.184.215.14/", "http://151.101.1.6/"}, Network: runtime.NetworkLimits{BytesIn: 10},
		})
		var got map[string]string
		if err := json.Unmarshal(res.Value, &got); err != nil || !isServed(got["http://93.184.215.14/"]) || isServed(got["http://151.101.1.6/"]) {
			t.Errorf("value %s, stderr %s", res.Value, res.Stderr)
		}
		if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Rule == "limits.bytesIn" }) {
			t.Errorf("denials %+v", res.Denials)
		}
	})
	if err := harness.CreateError(t, harness.Options(runtime.Options{Network: runtime.NetworkLimits{LookupsPerSec: -1}})); err == nil || !strings.Contains(err.Error(), "LookupsPerSec") {
		t.Errorf("err %v", err)
	}
}
