package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// toHostPorts allows to connect to ports 3000 to 3002 of localhost, and to use all that the guest has
// there.
const toHostPorts = `{"rules":[{"mode":"allow","operations":["fetch","connect"],"patterns":["tcp://localhost:3000-3002"]},{"mode":"allow","patterns":["tcp://localhost:4000","udp://localhost:*"]}]}`

// serveHost has servers on the host's localhost, and on its other addresses, that say where they are.
// On port 3001 there is one for IPv6 only, and on 3002 none.
func serveHost(t *testing.T) {
	t.Helper()
	for _, at := range []string{"127.0.0.1:3000", "127.0.0.2:3000", "[::1]:3001", "127.0.0.1:3003", "127.0.0.1:4000", publicV4.String() + ":3000"} {
		a := netip.MustParseAddrPort(at)
		serveHTTP(t, a.Addr(), a.Port(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
				return
			}
			fmt.Fprintf(w, "served by %s", at)
		}), nil)
	}
}

// Named ports of the host are reached on the guest's localhost, and nothing else of the host is.
func TestHostPorts(t *testing.T) {
	needBPF(t)
	serveNames(t)
	serveHost(t)
	rt := harness.CreateExact(t, harness.Options(runtime.Options{HostPorts: []int{3000, 3001, 3002}, Permissions: permissions(t, toHostPorts)}))
	want := map[string]string{
		"http://localhost:3000/": "served by 127.0.0.1:3000", "http://127.0.0.1:3000/": "served by 127.0.0.1:3000", "http://[::1]:3000/": "served by 127.0.0.1:3000",
		"http://0.0.0.0:3000/": "served by 127.0.0.1:3000", "http://[::ffff:127.0.0.1]:3000/": "served by 127.0.0.1:3000", "http://localhost:3001/": "served by [::1]:3001",
		"http://127.0.0.1:3002/": "ECONNRESET", // nothing listens
		"http://127.0.0.2:3000/": "ECONNREFUSED", "http://127.0.0.1:3003/": "ECONNREFUSED", "http://localhost:4000/": "ECONNREFUSED",
		"http://93.184.215.14:3000/": "EACCES", "http://10.0.2.15:3000/": "EACCES", "http://[::ffff:127.0.0.2]:3000/": "ECONNREFUSED",
		"http://localhost:3000/?to=http://localhost:3003/": "ECONNREFUSED", "http://localhost:3000/?to=http://localhost:3001/": "served by [::1]:3001",
	}
	var urls []string
	for url := range want {
		urls = append(urls, url)
	}
	got, res := attempts(t, rt, fetching, urls...)
	for url, text := range want {
		if got[url] != text {
			t.Errorf("%s: %q, want %q", url, got[url], text)
		}
	}
	if u := res.Usage.Network; u.Connections < 8 || u.BytesIn == 0 || u.BytesOut == 0 {
		t.Errorf("usage %+v", u)
	}
	testHostPortsAreTaken(t, rt)
	testHostPortsOfRun(t, rt)
}

// testHostPortsAreTaken tries to listen on the host's ports, and to send datagrams to one.
func testHostPortsAreTaken(t *testing.T, rt *runtime.NodeRuntime) {
	datagrams, err := net.ListenPacket("udp", "127.0.0.1:3000")
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	got, _ := attempts(t, rt, `
import net from 'node:net';
import dgram from 'node:dgram';
const got = {};
for (const host of ['127.0.0.1', '0.0.0.0', '::1', '::', '127.0.0.2']) {
	const server = net.createServer();
	got[host] = await new Promise(done => server.on('error', err => done(err.code)).listen(3000, host, () => done('listening')));
}
await new Promise(done => net.connect({ port: 3000, host: '127.0.0.2' }).on('error', err => done(got.connect = err.code)).on('connect', () => done(got.connect = 'connected')));
const socket = dgram.createSocket('udp4');
got.udp = await new Promise(done => socket.send('x', 3000, '127.0.0.1', err => done(err?.code ?? 'sent')));
socket.close();
__return(got);
setImmediate(() => process.exit());`)
	want := map[string]string{"127.0.0.1": "EADDRINUSE", "0.0.0.0": "EADDRINUSE", "::1": "EADDRINUSE", "::": "EADDRINUSE", "127.0.0.2": "listening", "connect": "ECONNREFUSED", "udp": "sent"}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s, want %s", name, got[name], text)
		}
	}
	if err := datagrams.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if n, from, err := datagrams.ReadFrom(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes by UDP from %s", n, from)
	}
	if _, err := rt.Dial(t.Context(), "tcp", 3000); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("dial a port of the host: %v", err)
	}
	if list, err := rt.Listeners(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// testHostPortsOfRun narrows a run, whose connects to the other port fail immediately.
func testHostPortsOfRun(t *testing.T, rt *runtime.NodeRuntime) {
	narrow := permissions(t, strings.Replace(toHostPorts, "3000-3002", "3001", 1))
	got, res := attemptsWith(t, rt, fetching, runtime.RunOptions{Permissions: narrow, Args: []string{"http://127.0.0.1:3000/", "http://[::1]:3000/", "http://localhost:3001/"}})
	if got["http://127.0.0.1:3000/"] != "EACCES" || got["http://[::1]:3000/"] != "EACCES" || got["http://localhost:3001/"] != "served by [::1]:3001" {
		t.Errorf("%v", got)
	}
	if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Target == "tcp://localhost:3000" && d.Operation == "connect" }) {
		t.Errorf("denials %+v", res.Denials)
	}
}

// The limits of Options.Network hold for ports of the host, and connections end when the host's server
// closes them.
func TestHostPortLimits(t *testing.T) {
	serveNames(t)
	l, err := net.Listen("tcp", "127.0.0.1:3000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // which ends when the guest says something
				_, _ = c.Read(make([]byte, 1))
				_ = c.Close()
			}()
		}
	}()
	rt := harness.CreateExact(t, harness.Options(runtime.Options{HostPorts: []int{3000}, Permissions: permissions(t, toHostPorts), Network: runtime.NetworkLimits{Connections: 4}}))
	got, res := attempts(t, rt, `
import net from 'node:net';
let closed = 0, reset = 0;
const sockets = Array.from({ length: 20 }, () => net.connect(3000, '127.0.0.1'));
const close = () => sockets.filter(s => !s.destroyed).forEach(s => s.write('x'));
await Promise.all(sockets.map(s => new Promise(done => s.resume().on('close', done).on('end', () => closed++).on('error', err => {
	if (err.code === 'ECONNRESET' && ++reset === 16) close();
}))));
__return({ closed: String(closed), reset: String(reset) });`)
	if got["closed"] != "4" || got["reset"] != "16" {
		t.Errorf("%v", got)
	}
	if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Rule == "limits.connections" }) {
		t.Errorf("denials %+v", res.Denials)
	}
}

// Create refuses ports to which the permissions let no guest connect, and names the rule.
func TestHostPortsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		network string
		ports   []int
		want    string
	}{
		"no network": {`"deny"`, []int{3000}, `"patterns": ["tcp://localhost:3000"]`},
		"other port": {toHostPorts, []int{3001, 80}, `"patterns": ["tcp://localhost:80"]`},
		"denied":     {`{"default":"allow","rules":[{"mode":"deny","patterns":["tcp://localhost:80"]}]}`, []int{80}, "deny port 80"},
		"0":          {`"allow"`, []int{0}, "0 is not a port"},
		"65536":      {`"allow"`, []int{65536}, "not a port"},
		"twice":      {`"allow"`, []int{80, 80}, "listed twice"},
		"many":       {`"allow"`, make([]int, 65), "the limit is 64"},
	} {
		o := harness.Options(runtime.Options{HostPorts: c.ports, Permissions: permissions(t, c.network)})
		rt, err := runtime.Create(t.Context(), o)
		if err == nil {
			_ = rt.Close()
		}
		if option, ok := errors.AsType[*runtime.OptionError](err); !ok || option.Option != "HostPorts" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
