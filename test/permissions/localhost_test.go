package permissions

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// testsOfServers are what tests of servers do, as with supertest: listen on an ephemeral port of all
// addresses, or on a port that needs root elsewhere, and connect to it by each name of localhost.
const testsOfServers = `
	import http from 'node:http'; import dgram from 'node:dgram'; import net from 'node:net'; import { once } from 'node:events';
	const web = async (port, on, name) => {
		const server = http.createServer((q, r) => r.end('hi ' + q.url)).listen(port, on); await once(server, 'listening');
		const text = await (await fetch('http://' + name + ':' + server.address().port + '/x')).text();
		server.close();
		if (text !== 'hi /x') throw new Error(text);
	};
	await attempt('ephemeral', () => web(0, undefined, '127.0.0.1'));
	await attempt('low port', () => web(80, '127.0.0.1', '127.0.0.1'));
	await attempt('low port 6', () => web(443, '::1', '[::1]'));
	await attempt('name', () => web(3000, 'localhost', 'localhost'));
	await attempt('another address', () => web(3001, '127.1.2.3', '127.1.2.3'));
	for (const [kind, at] of [['udp4', '127.0.0.1'], ['udp6', '::1']]) await attempt(kind, async () => {
		const server = dgram.createSocket(kind).on('message', (m, from) => server.send(m, from.port, from.address)).bind(53, at); await once(server, 'listening');
		const client = dgram.createSocket(kind); client.send('x', 53, at);
		await once(client, 'message'); server.close(); client.close();
	});
	await attempt('host', () => once(net.connect(Number(process.argv[2]), '127.0.0.1'), 'connect').then(() => {}));
	await attempt('another host', () => once(net.connect(80, '192.0.2.1'), 'connect').then(() => {}));`

// By default a guest has TCP and UDP on its own localhost, on all ports. It reaches neither the host's localhost nor another
// host, and no localhost if the network is denied.
func TestLocalhostByDefault(t *testing.T) {
	port := strconv.Itoa(int(onHost(t)))
	own := map[string]string{
		"ephemeral": "ok", "low port": "ok", "low port 6": "ok", "name": "ok", "another address": "ok", "udp4": "ok", "udp6": "ok",
		"host": "ECONNREFUSED", "another host": "ENETUNREACH",
	}
	none := map[string]string{}
	for name := range own {
		none[name] = "EACCES"
	}
	for name, tc := range map[string]struct {
		p    policy.Permissions
		want map[string]string
	}{
		"omitted": {policy.Permissions{}, own}, "other scopes": {noSpawn, own},
		"workspace": {policy.Workspace("/workspace"), own}, "default": {policy.Default(), own},
		"deny": {noNetwork, none},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "workspace" {
				harness.Require(t, runtime.FeatureLandlock, tc.p)
			}
			rt := harness.Create(t, runtime.Options{Permissions: tc.p})
			wantSame(t, name, tc.want, attempts(t, rt, testsOfServers, runtime.RunOptions{Args: []string{port}}))
			got := attempts(t, rt, testsOfServers, runtime.RunOptions{Args: []string{port}, Permissions: noNetwork})
			wantSame(t, "a run without it", none, got)
		})
	}
}

// Raw sockets and other protocols stay refused.
func TestDefaultProtocols(t *testing.T) {
	rt := harness.CreatePermitted(t, policy.Permissions{})
	program := harness.Install(t, rt, "net")
	got := "\n" + harness.Output(t, rt, runtime.RunOptions{}, program, "sockets") + "\n"
	for _, line := range []string{"2 1 ok", "2 2 ok", "2 3 EPERM", "10 3 EPERM", "17 3 EAFNOSUPPORT"} {
		if !strings.Contains(got, "\n"+line+"\n") {
			t.Errorf("family, type and outcome %q are not in %s", line, got)
		}
	}
}

// onHost listens on the host's localhost. It returns the port.
func onHost(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Error(fmt.Errorf("a guest is connected to the host: %v", c.RemoteAddr()))
			c.Close()
		}
	}()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}
