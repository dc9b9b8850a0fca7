package network

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

const apiOnly = `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:80,443","tcp://private.test:80","tcp://metadata.test:80","tcp://nat64.test:80","tcp://mapped.test:80","tcp://loopback.test:80"]}]}`

// A name is reached on the ports that a rule allows, by HTTP and HTTPS.
func TestFetchByName(t *testing.T) {
	names := serveInternet(t)
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, _ := attempts(t, rt, fetching, "http://api.example.com/", "https://api.example.com/", "http://API.EXAMPLE.com./")
		for url, text := range got {
			if !isServed(text) {
				t.Errorf("%s: %s", url, text)
			}
		}
		denied := []string{
			"http://api.example.com:81/", "https://www.example.com/", "http://other.test/", "http://private.test/", "http://metadata.test/",
			"http://nat64.test/", "http://mapped.test/", "http://loopback.test/", "http://unknown.test/", "http://192.0.2.53:53/",
		}
		got, res := attempts(t, rt, fetching, denied...)
		for _, url := range slices.Sorted(maps.Keys(got)) {
			if isServed(got[url]) {
				t.Errorf("%s: %s", url, got[url])
			}
		}
		if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool {
			return d.Target == "dns://other.test" && d.Rule == "network.default" && d.Source == runtime.SourceEgress
		}) {
			t.Errorf("denials %+v", res.Denials)
		}
	})
	if n := names.Asked("other.test"); n != 0 {
		t.Errorf("%d questions about a denied name left the sandbox", n)
	}
}

func TestNetworkAllow(t *testing.T) {
	serveInternet(t)
	eachLauncher(t, `"allow"`, func(t *testing.T, rt *runtime.NodeRuntime) {
		public := []string{"http://api.example.com/", "https://other.test/", "http://93.184.215.14/", "http://[2606:2800:220:1::14]/", "http://0x5db8d70e/"}
		got, _ := attempts(t, rt, fetching, public...)
		for url, text := range got {
			if !isServed(text) {
				t.Errorf("%s: %s", url, text)
			}
		}
		got, _ = attempts(t, rt, fetching, "http://10.1.2.3/", "http://private.test/", "http://169.254.169.254/latest/meta-data/", "http://metadata.test/",
			"http://other.test/?to=http://169.254.169.254/", "http://other.test/?to=http://127.0.0.1/", "http://127.0.0.1/", "http://loopback.test/", "http://192.0.2.1/", "http://nat64.test/")
		for url, text := range got {
			if isServed(text) {
				t.Errorf("%s: %s", url, text)
			}
		}
	})
}

// With rules for a network by address, that network is reached and nothing else.
func TestPrivateNetworkByRule(t *testing.T) {
	serveInternet(t)
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://10.0.0.0/8:80","tcp://private.test:80"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, _ := attempts(t, rt, fetching, "http://10.1.2.3/", "http://private.test/", "http://93.184.215.14/", "http://169.254.169.254/")
		want := map[string]bool{"http://10.1.2.3/": true, "http://private.test/": true}
		for url, text := range got {
			if isServed(text) != want[url] {
				t.Errorf("%s: %s", url, text)
			}
		}
	})
}

// A rule for an external host opens no port of localhost, and the guest's own servers are
// reached by the rules for it.
func TestLocalhostBesideEgress(t *testing.T) {
	needBPF(t)
	serveInternet(t)
	const code = `
import http from 'node:http';
const got = {};
for (const port of [8000, 3000, 4000]) {
	const server = http.createServer((req, res) => res.end('served by guest'));
	await new Promise(done => server.listen(port, '127.0.0.1', done));
	try {
		got[port] = await (await fetch('http://127.0.0.1:' + port)).text();
	} catch (err) {
		got[port] = err.cause.code;
	}
	server.closeAllConnections();
	server.close();
}
got.outside = await (await fetch('http://api.example.com/')).text();
__return(got);`
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:80,8000","tcp://localhost:3000-3999"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		got, res := attempts(t, rt, code)
		if got["8000"] != "EACCES" || got["3000"] != "served by guest" || got["4000"] != "EACCES" || !isServed(got["outside"]) {
			t.Errorf("got %v", got)
		}
		for _, port := range []string{"8000", "4000"} {
			if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Target == "tcp://localhost:"+port && d.Operation == "connect" }) {
				t.Errorf("port %s is missing in %+v", port, res.Denials)
			}
		}
	})
}

// A run may give up the network.
func TestRunWithoutNetwork(t *testing.T) {
	serveInternet(t)
	eachLauncher(t, apiOnly, func(t *testing.T, rt *runtime.NodeRuntime) {
		none := permissions(t, `"deny"`)
		res := harness.Run(t, rt, fetching, runtime.RunOptions{Args: []string{"http://api.example.com/"}, Permissions: none})
		if !strings.Contains(string(res.Value), "EAI_AGAIN") && !strings.Contains(string(res.Value), "ECONNREFUSED") {
			t.Errorf("value %s, stderr %s", res.Value, res.Stderr)
		}
	})
}
