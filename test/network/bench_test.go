package network

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	goruntime "runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// BenchmarkEgress compares an external host with the same server on the jail's own loopback:
// small requests over one connection, connects, and throughput down and up. It prints
// medians and their ratios. The two sides take turns.
func BenchmarkEgress(b *testing.B) {
	serveNames(b)
	const port = 9000
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/down":
			part := make([]byte, 256<<10)
			for range 1 << 10 {
				_, _ = w.Write(part)
			}
		case "/up":
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
		default:
			_, _ = io.WriteString(w, "ok")
		}
	})
	serveHTTP(b, publicV4, port, handler, nil)
	for _, rules := range []struct{ name, network string }{
		{"by name", `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:9000","tcp://localhost:9000"]}]}`},
		{"wide", `"allow"`},
	} {
		p := permissions(b, rules.network)
		rt := harness.Create(b, runtime.Options{Permissions: p, Limits: runtime.Limits{CPUs: 2, Memory: 1 << 30}})
		serveInJail(b, harness.StartNode(b, rt), port, handler)
		samples := map[string][]float64{}
		for range max(b.N, 5) {
			for _, host := range []string{"127.0.0.1", "api.example.com"} {
				res := harness.Run(b, rt, measuring, runtime.RunOptions{Args: []string{host}})
				var got map[string]float64
				if err := json.Unmarshal(res.Value, &got); err != nil {
					b.Fatalf("%s: %s", err, res.Stderr)
				}
				for name, v := range got {
					samples[name+" "+host] = append(samples[name+" "+host], v)
				}
			}
		}
		for _, name := range []string{"request µs", "connect µs", "down Gbit/s", "up Gbit/s"} {
			near, far := median(samples[name+" 127.0.0.1"]), median(samples[name+" api.example.com"])
			b.Logf("%-8s %-12s loopback %8.2f, outside %8.2f, ratio %.2f", rules.name, name, near, far, far/near)
		}
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

const measuring = `
import http from 'node:http';
import net from 'node:net';
const host = process.argv[2], port = 9000;
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const request = (path, size) => new Promise((done, fail) => {
	const req = http.request({ host, port, path, agent, method: size ? 'POST' : 'GET' }, res => {
		let n = 0;
		res.on('data', part => { n += part.length; }).on('end', () => done(n));
	}).on('error', fail);
	if (!size) return req.end();
	const part = Buffer.alloc(256 << 10);
	let left = size;
	const more = () => { while (left > 0) { left -= part.length; if (!req.write(part)) return void req.once('drain', more); } req.end(); };
	more();
});
const connect = () => new Promise((done, fail) => {
	const s = net.connect(port, host, () => { s.destroy(); s.on('close', done); }).on('error', fail);
});
const times = async (n, f) => {
	const all = [];
	for (let i = 0; i < n; i++) { const t = performance.now(); await f(); all.push(performance.now() - t); }
	return all.sort((a, b) => a - b)[n >> 1] * 1000;
};
await times(200, () => request('/'));
const got = { 'request µs': await times(1000, () => request('/')), 'connect µs': await times(200, connect) };
let t = performance.now();
got['down Gbit/s'] = await request('/down') * 8 / (performance.now() - t) / 1e6;
t = performance.now();
await request('/up', 256 << 20);
got['up Gbit/s'] = (256 << 20) * 8 / (performance.now() - t) / 1e6;
agent.destroy();
__return(got);`

// serveInJail starts a server of the host on the loopback of a process's jail.
func serveInJail(b *testing.B, pid, port int, h http.Handler) {
	b.Helper()
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		b.Fatal(err)
	}
	defer space.Close()
	var l net.Listener
	done := make(chan error)
	go func() {
		goruntime.LockOSThread()
		err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		if err == nil {
			l, err = net.Listen("tcp4", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)).String())
		}
		done <- err
	}()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	serveOn(b, l, h, nil)
}
