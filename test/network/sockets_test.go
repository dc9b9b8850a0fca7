package network

import (
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// socketTricks are the lines of testdata/sockets.c, with the results. Its rules allow port 80
// of 93.184.0.0/16.
var socketTricks = map[string]string{
	"request:93.184.215.14": "served",
	"request:10.1.2.3":      "refused",
	"resolver:80":           "ECONNREFUSED",
	"resolver:54":           "ECONNREFUSED",

	"socket:mptcp": "EPROTONOSUPPORT", "socket:mptcp6": "EPROTONOSUPPORT", "socket:sctp": "EPROTONOSUPPORT", "socket:smc-over-tcp": "EPROTONOSUPPORT",
	"socket:udplite": "EPROTONOSUPPORT", "socket:ping": "EPROTONOSUPPORT", "socket:sctp-packets": "EPERM", "socket:dccp": "EPERM",
	"socket:raw": "EPERM", "socket:raw-tcp": "EPERM", "socket:raw-icmp6": "EPERM", "socket:packet-old": "EPERM",
	"socket:packet": "EAFNOSUPPORT", "socket:packet-cooked": "EAFNOSUPPORT", "socket:vsock": "EAFNOSUPPORT", "socket:alg": "EAFNOSUPPORT", "socket:xdp": "EAFNOSUPPORT",
	"socket:smc": "EAFNOSUPPORT", "socket:rds": "EAFNOSUPPORT", "socket:tipc": "EAFNOSUPPORT", "socket:can": "EAFNOSUPPORT", "socket:kcm": "EAFNOSUPPORT", "socket:pppox": "EAFNOSUPPORT",
	"socket:sock_diag": "EPROTONOSUPPORT", "socket:netfilter": "EPROTONOSUPPORT", "socket:xfrm": "EPROTONOSUPPORT", "socket:generic": "EPROTONOSUPPORT", "socket:uevent": "EPROTONOSUPPORT",

	"sendto-fast-open:10.1.2.3": "EOPNOTSUPP", "sendto-fast-open:93.184.215.14": "EOPNOTSUPP",
	"sendmsg-fast-open:10.1.2.3": "EOPNOTSUPP", "sendmsg-fast-open:93.184.215.14": "EOPNOTSUPP",
	"connect-fast-open:10.1.2.3": "refused", "connect-fast-open:93.184.215.14": "served",

	"bind-to-lo:10.1.2.3": "refused", "bind-to-lo:93.184.215.14": "served", "bind-to-eth0:10.1.2.3": "ENODEV",
	"mark": "EPERM", "priority": "EPERM", "transparent": "EPERM", "free-bind": "refused", "repair": "EPERM", "ulp": "EPERM",
	"xfrm-policy": "ENOPROTOOPT", "multicast-router": "ENOPROTOOPT", "attach-bpf": "EPERM",
	"source-route:via-allowed": "ENOPROTOOPT", "source-route:strict": "ENOPROTOOPT", "source-route:via-denied": "ENOPROTOOPT",
	"routing-header:type-0": "ENOPROTOOPT", "routing-header:segments": "ENOPROTOOPT",

	"bind:resolver":  "EADDRINUSE",
	"listen:0.0.0.0": "refused", "listen:93.184.215.14": "refused", "listen:10.1.2.3": "refused", "listen:198.18.0.1": "refused",
	"connect:to-itself": "EACCES", "race": "both",

	"datagram:93.184.215.14:443": "ECONNREFUSED", "datagram:10.1.2.3:53": "ECONNREFUSED", "datagram:8.8.8.8:53": "ECONNREFUSED", "datagram:10.0.2.3:5353": "ECONNREFUSED",
	"datagram:10.0.2.3:54": "ECONNREFUSED", "datagram:10.0.2.15:53": "ECONNREFUSED", "datagram:10.0.2.2:53": "ECONNREFUSED", "datagram:127.0.0.53:53": "ECONNREFUSED",
	"datagram:192.0.2.53:53": "ECONNREFUSED", "datagram:198.18.0.1:443": "ECONNREFUSED", "datagram:169.254.169.254:123": "ECONNREFUSED", "datagram:0.0.0.0:53": "ECONNREFUSED",
	"datagram:255.255.255.255:67": "EAGAIN", "datagram:224.0.0.251:5353": "EAGAIN", // to the guest's own sockets, of which there are none

	"netlink:new-route": "EPERM", "netlink:delete-route": "EPERM", "netlink:new-address": "EPERM", "netlink:delete-address": "EPERM", "netlink:set-link": "EPERM",
	"netlink:new-link": "EPERM", "netlink:new-neighbour": "EPERM", "netlink:new-rule": "EPERM", "netlink:new-queue": "EPERM",
	"ioctl:flags": "EPERM", "ioctl:address": "EPERM", "ioctl:route": "EPERM",
	"unshare:network": "EPERM", "unshare:user-and-network": "EPERM", "io_uring": "EPERM", "bpf": "EPERM",
	"abstract": "ECONNREFUSED",
}

// sources are addresses that a guest binds. Addresses of others give it nothing.
func addSources(want map[string]string) {
	for _, from := range []string{"93.184.215.14", "10.1.2.3", "10.0.2.3", "127.0.0.1", "192.0.2.1", "198.18.0.1", "169.254.169.254", "0.0.0.0"} {
		want["from:"+from+"-to-10.1.2.3"] = "refused"
		want["from:"+from+"-to-93.184.215.14"] = "served"
		want["from:"+from+"-to-0.0.0.0"] = "refused" // the kernel connects to the source
	}
	want["from:127.0.0.1-to-0.0.0.0"] = "ECONNREFUSED"
	want["from:0.0.0.0-to-0.0.0.0"] = "ECONNREFUSED"
	want["from:10.0.2.3-to-0.0.0.0"] = "ECONNREFUSED"
	want["from:93.184.215.14-to-0.0.0.0"] = "EACCES" // though the kernel would connect to the source
}

// System calls that Node does not offer reach nothing else.
func TestSocketTricks(t *testing.T) {
	needBPF(t)
	in := serveInternet(t)
	const abstract = "gaol-test-host"
	l, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := maps.Clone(socketTricks)
	addSources(want)
	eachLauncher(t, `{"rules":[{"mode":"allow","patterns":["tcp://93.184.0.0/16:80"]}]}`, func(t *testing.T, rt *runtime.NodeRuntime) {
		in.forget()
		datagrams := snmp(t, "Udp:", "OutDatagrams")
		program := harness.Install(t, rt, "sockets")
		got := map[string]string{}
		for _, line := range strings.Split(harness.Output(t, rt, runtime.RunOptions{}, program, abstract), "\n") {
			name, result, _ := strings.Cut(line, " ")
			got[name] = result
		}
		check(t, got, want)
		in.checkReached(t, publicV4)
		if n := snmp(t, "Udp:", "OutDatagrams") - datagrams; n != 0 {
			t.Errorf("the host has sent %d datagrams", n)
		}
	})
}

// A run that listens on the addresses of hosts gets no connections of another run, in its
// runtime or in another one.
func TestImpersonation(t *testing.T) {
	needBPF(t)
	in := serveInternet(t)
	serveHTTP(t, publicV4, 8080, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served by the host") }), nil)
	const network = `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:8080","tcp://localhost:8080"]}]}`
	const impostor = `
import net from 'node:net';
import dns from 'node:dns';
const { address } = await dns.promises.lookup('api.example.com', { family: 4 });
const hosts = process.argv[2] === 'all' ? ['0.0.0.0', '::'] : ['127.0.0.1', '93.184.215.14', '10.0.2.15', '10.0.2.2', '198.18.0.99', address];
for (const host of hosts) {
	const server = net.createServer(s => s.end('HTTP/1.0 200 OK\r\n\r\nserved by a guest'));
	await new Promise((done, fail) => server.on('error', fail).listen({ host, port: 8080, ipv6Only: true }, done));
}
console.log('up');`
	eachLauncher(t, network, func(t *testing.T, rt *runtime.NodeRuntime) {
		neighbour := harness.Create(t, runtime.Options{Permissions: permissions(t, network)})
		for _, on := range []string{"all", "each"} {
			impersonate(t, rt, neighbour, strings.ReplaceAll(impostor, "process.argv[2]", "'"+on+"'"))
		}
	})
	in.checkReached(t)
}

// impersonate starts an impostor in rt and fetches from the hosts that it pretends to be.
func impersonate(t *testing.T, rt, neighbour *runtime.NodeRuntime, impostor string) {
	t.Helper()
	defer harness.StartProgram(t, rt, impostor)()
	const own = "http://127.0.0.1:8080/"
	for _, victim := range []*runtime.NodeRuntime{rt, neighbour} {
		want := map[string]string{
			"http://api.example.com:8080/": "served by the host", "http://93.184.215.14:8080/": "refused", "http://[2606:2800:220:1::14]:8080/": "refused",
			"http://10.0.2.15:8080/": "refused", "http://10.0.2.2:8080/": "refused", "http://198.18.0.99:8080/": "refused", own: "ECONNREFUSED",
		}
		if victim == rt {
			want[own] = "served by a guest"
		}
		got, _ := attempts(t, victim, fetching, slices.Collect(maps.Keys(want))...)
		check(t, got, want)
	}
}
