package network

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// BenchmarkNeighbour measures small requests of a runtime while another one floods its network,
// and while it does nothing. Both take turns. It prints the ratio of the medians.
func BenchmarkNeighbour(b *testing.B) {
	serveInternet(b)
	serveFloods(b)
	neighbour := harness.Create(b, runtime.Options{Permissions: permissions(b, floodRules)})
	for _, f := range append(floods[:len(floods):len(floods)], flood{mode: "spin", host: "0.0.0.0", port: "0"}) {
		b.Run(f.mode, func(b *testing.B) {
			var quiet, busy []float64
			for range max(b.N, 3) {
				rt := harness.Create(b, runtime.Options{Permissions: permissions(b, floodRules), Limits: runtime.Limits{OpenFiles: 4096, Memory: 1 << 30}})
				program := harness.Install(b, rt, "flood")
				quiet = append(quiet, requestTime(b, neighbour))
				stop := startFlood(b, rt, program, f.mode, f.host, f.port)
				busy = append(busy, requestTime(b, neighbour))
				stop()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(quiet), "quiet-µs")
			b.ReportMetric(median(busy)/median(quiet), "ratio")
		})
	}
}

// requestTime returns the median of small requests over one connection, in microseconds.
func requestTime(b *testing.B, rt *runtime.NodeRuntime) (microseconds float64) {
	b.Helper()
	const code = `
import http from 'node:http';
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const request = () => new Promise((done, fail) => http.get({ host: 'api.example.com', agent }, res => res.resume().on('end', done)).on('error', fail));
const all = [];
for (let i = 0; i < 600; i++) { const t = performance.now(); await request(); all.push(performance.now() - t); }
agent.destroy();
__return(all.slice(100).sort((a, b) => a - b)[250] * 1000);`
	res := harness.Run(b, rt, code, runtime.RunOptions{})
	if _, err := fmt.Sscan(string(res.Value), &microseconds); err != nil {
		b.Fatalf("value %s, stderr %s", res.Value, res.Stderr)
	}
	return microseconds
}

// BenchmarkIdleConnections measures the memory of this process for each connection of a
// guest. The server, which is in this process, too, has one goroutine for all of them.
func BenchmarkIdleConnections(b *testing.B) {
	serveInternet(b)
	const (
		connect = `const use = (host, done) => net.connect(9, host, done)`
		request = `const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 1000 });
			const use = (_, done) => http.get({ host: 'api.example.com', port: 9, agent }, (res) => res.resume().on('end', done))`
	)
	for _, tc := range []struct{ name, rules, code string }{
		{"wide", `"allow"`, connect},
		{"by name", onlyPort9, connect},
		{"by name, HTTP", onlyPort9, request},
	} {
		b.Run(tc.name, func(b *testing.B) {
			serveOnce(b, 9, tc.code == request)
			rt := harness.Create(b, runtime.Options{Permissions: permissions(b, tc.rules), Limits: runtime.Limits{OpenFiles: 4096, Memory: 1 << 30}})
			before := resident(b)
			stop := harness.StartProgram(b, rt, idle(tc.code))
			harness.WaitFor(b, "all servers are dialed", func() bool { return established(9) >= idleConnections })
			if tc.code == request { // after some seconds
				harness.WaitFor(b, "the server's side is closed", func() bool { return established(9) == 0 })
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(resident(b)-before)/idleConnections/1024, "KiB/connection")
			stop()
		})
	}
}

const (
	idleConnections = 800
	onlyPort9       = `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:9"]}]}`
)

// idle is a program that uses each of its connections once, as code says, and keeps it.
func idle(code string) string {
	return fmt.Sprintf(`
		import http from 'node:http';
		import net from 'node:net';
		import dns from 'node:dns/promises';
		%s;
		const { address } = await dns.lookup('api.example.com', { family: 4 });
		await Promise.all(Array.from({ length: %d }, () => new Promise((done, fail) => use(address, done).on('error', fail))));
		console.log('up');
		setInterval(() => {}, 1000);`, code, idleConnections)
}

// established counts this process's connections to a port.
func established(port int) (n int) {
	for _, line := range append(harness.Lines("/proc/self/net/tcp"), harness.Lines("/proc/self/net/tcp6")...) {
		if fields := strings.Fields(line); strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) && fields[3] == "01" {
			n++
		}
	}
	return n
}

// serveOnce keeps each connection to a port, and answers the first request of each if answer is
// true. One goroutine serves all, so that a connection needs little memory.
func serveOnce(b *testing.B, port uint16, answer bool) {
	b.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
	if err != nil {
		b.Fatal(err)
	}
	var conns []net.Conn
	b.Cleanup(func() { l.Close() })
	go func() {
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, c)
			if !answer {
				continue
			}
			_, _ = c.Read(make([]byte, 4096)) // the guest fails without an answer
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	}()
}

// resident is the memory of this process, in bytes, that a garbage collection leaves.
func resident(b *testing.B) int64 {
	b.Helper()
	harness.RetainedHeap()
	debug.FreeOSMemory()
	return harness.ProcNumber(b, "/proc/self/status", "VmRSS:") << 10
}

// BenchmarkCreateWithNetwork compares Create and Close with a way out and without one.
func BenchmarkCreateWithNetwork(b *testing.B) {
	serveInternet(b)
	samples := map[string][]float64{}
	warm := harness.Create(b, runtime.Options{})
	harness.Run(b, warm, ``, runtime.RunOptions{})
	for range max(b.N, 40) {
		for _, network := range []string{`"deny"`, `"allow"`, apiOnly} {
			o := harness.Options(runtime.Options{Permissions: permissions(b, network)})
			start := time.Now()
			rt, err := runtime.Create(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			samples[network] = append(samples[network], float64(time.Since(start).Microseconds()))
			if err := rt.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	without := median(samples[`"deny"`])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(without/1000, "ms-without")
	b.ReportMetric((median(samples[`"allow"`])-without)/1000, "ms-more-wide")
	b.ReportMetric((median(samples[apiOnly])-without)/1000, "ms-more-by-name")
}

// BenchmarkDenied measures how long a guest waits for the refusal of a connection, and compares
// it with one that the kernel refuses because there is no server.
func BenchmarkDenied(b *testing.B) {
	serveInternet(b)
	rt := harness.Create(b, runtime.Options{Permissions: permissions(b, apiOnly)})
	const code = `
import net from 'node:net';
const refused = host => new Promise(done => { const s = net.connect(80, host); s.on('error', () => {}).on('close', done); });
const times = async host => {
	const all = [];
	for (let i = 0; i < 300; i++) { const t = performance.now(); await refused(host); all.push(performance.now() - t); }
	return all.sort((a, b) => a - b)[150] * 1000;
};
await times('10.1.2.3');
__return([await times('10.1.2.3'), await times('127.0.0.1')].join(' '));`
	var denied, closed []float64
	for range max(b.N, 3) {
		res := harness.Run(b, rt, code, runtime.RunOptions{})
		var d, c float64
		if _, err := fmt.Sscan(strings.Trim(string(res.Value), `"`), &d, &c); err != nil {
			b.Fatalf("value %s, stderr %s", res.Value, res.Stderr)
		}
		denied, closed = append(denied, d), append(closed, c)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(denied), "µs")
	b.ReportMetric(median(denied)/median(closed), "ratio-to-closed-port")
}
