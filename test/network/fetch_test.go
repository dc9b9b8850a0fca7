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
		for _, host := range spellings {
			denied = append(denied, "http://"+host+"/")
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

// spellings are hosts that no rule about a public name may reach.
var spellings = []string{
	"93.184.215.14", "0x5db8d70e", "1572394766", "0135.0270.0327.016", "93.12113678", "[::ffff:93.184.215.14]", "[2606:2800:220:1::14]",
	"151.101.1.6", "10.1.2.3", "10.66051", "0xa.1.2.3", "012.1.2.3", "167838211", "[::ffff:10.1.2.3]", "[::ffff:a01:203]", "[::10.1.2.3]",
	"[64:ff9b::10.1.2.3]", "[64:ff9b::a01:203]", "[64:ff9b:1::a01:203]", "[2002:a01:203::]", "[2001::a01:203]",
	"169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.43518", "0251.0376.0251.0376", "[::ffff:169.254.169.254]", "[fd00:ec2::254]",
	"0.0.0.0", "0", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "127.255.255.254", "[::1]", "[::]", "[::ffff:127.0.0.1]",
	"[::7f00:1]", "localhost", "localhost.", "a.localhost", "10.0.2.15", "10.0.2.3", "10.0.2.2", "[fd00::2:15]", "192.0.2.1", "192.0.2.53",
	"198.18.0.1", "198.18.0.99", "198.19.255.254", "[2001:2::1]", "[2001:2::99]", "100.64.0.1", "172.16.0.1", "192.168.0.1", "192.168.1.1",
	"224.0.0.1", "255.255.255.255", "240.0.0.1", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[fc00::1]", "[100::1]", "[5f00::1]",
	"api.example.com.evil.test", "evil.test", "xapi.example.com", "example.com", "api.example.co", "user:api.example.com@other.test",
	"other.test:80", "api.example.com:8080", "api%2eexample%2ecom.other.test", "xn--bcher-kva.test", "bücher.test", "ａｐｉ.other.test",
	"private.test", "PRIVATE.test", "private.test.", "metadata.test", "loopback.test", "www.example.com",
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

// A rule for a host outside opens no port of localhost, and the guest's own servers are
// reached by the rules for it.
func TestLocalhostBesideEgress(t *testing.T) {
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
		got, _ := attempts(t, rt, code)
		if got["8000"] != "ECONNREFUSED" || got["3000"] != "served by guest" || got["4000"] != "ECONNREFUSED" || !isServed(got["outside"]) {
			t.Errorf("got %v", got)
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
