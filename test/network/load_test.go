package network

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
	"gaol/test/tier"
)

// A runtime can use a thousand connections at the same time.
func TestThousandConnections(t *testing.T) {
	tier.Soak(t)
	serveInternet(t)
	const n = 1000
	var mu sync.Mutex
	now, most := 0, 0
	internettest.Listen(t, publicV4, 7, func(c net.Conn) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		_, _ = io.Copy(c, c)
		mu.Lock()
		now--
		mu.Unlock()
	})
	const code = `
import net from 'node:net';
const sockets = Array.from({ length: 1000 }, () => net.connect(7, '93.184.215.14'));
let echoed = 0;
const echo = (s, text) => new Promise((done, fail) => {
	let all = '';
	const read = part => { all += part; if (all.length === text.length) { s.off('data', read).off('error', fail); if (all === text) echoed++; done(); } };
	s.on('data', read).on('error', fail).write(text);
});
for (const round of [1, 2, 3]) await Promise.all(sockets.map((s, i) => echo(s, 'round ' + round + ' of socket ' + i)));
sockets.forEach(s => s.destroy());
__return({ echoed: String(echoed) });`
	for _, l := range harness.SomeLaunchers() {
		o := harness.Options(runtime.Options{Permissions: permissions(t, `{"rules":[{"mode":"allow","patterns":["tcp://93.184.215.14:7"]}]}`), Limits: runtime.Limits{OpenFiles: 4096, Memory: 1 << 30}})
		o.Launcher = l
		rt := harness.CreateExact(t, o)
		if got, res := attempts(t, rt, code); got["echoed"] != "3000" || len(res.Denials) > 0 {
			t.Errorf("%s: got %v, denials %+v, stderr %s", l, got, res.Denials, res.Stderr)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if most != n {
		t.Errorf("the server had %d connections at once", most)
	}
}

// Many runtimes have requests open at the same time.
func TestManyRuntimes(t *testing.T) {
	serveInternet(t)
	n := harness.Fewer(100, 8)
	var mu sync.Mutex
	arrived, all := 0, make(chan struct{})
	serveHTTP(t, publicV4, 8080, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if arrived++; arrived == n {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
			_, _ = io.WriteString(w, "served all")
		case <-r.Context().Done():
		}
	}), nil)
	p := permissions(t, `{"rules":[{"mode":"allow","patterns":["tcp://api.example.com:8080"]}]}`)
	var running sync.WaitGroup
	for range n {
		rt := harness.Create(t, runtime.Options{Permissions: p})
		running.Go(func() {
			res, err := rt.Run(t.Context(), `__return(await (await fetch('http://api.example.com:8080/')).text())`, runtime.RunOptions{Timeout: -1})
			if err != nil || string(res.Value) != `"served all"` {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	running.Wait()
}

// A flood is a mode of testdata/flood.c, with the limit that it meets.
type flood struct {
	mode, host, port, limit string
	limits                  runtime.NetworkLimits
}

// slowly are limits per second that floods exceed on a busy machine, too.
var slowly = runtime.NetworkLimits{ConnectionsPerSec: 20, LookupsPerSec: 20}

var floods = []flood{
	{"connect", publicV4.String(), "7", "limits.connectionsPerSec", slowly},
	{"idle", publicV4.String(), "7", "limits.connections", runtime.NetworkLimits{}},
	{"read", publicV4.String(), "7", "limits.connections", runtime.NetworkLimits{}},
	{"write", publicV4.String(), "7", "limits.connections", runtime.NetworkLimits{}},
	{"udp", "10.0.2.3", "53", "limits.lookupsPerSec", slowly},
	{"tcp", "10.0.2.3", "53", "limits.lookupsPerSec", slowly},
}

const floodRules = `{"rules":[{"mode":"allow","patterns":["tcp://93.184.215.14:7","tcp://api.example.com:80"]}]}`

// serveFloods starts the server that floods use. It sends a byte, and then data to clients
// that request it. It reads nothing else.
func serveFloods(t testing.TB) {
	t.Helper()
	stop := make(chan struct{})
	part := make([]byte, 64<<10)
	internettest.Listen(t, publicV4, 7, func(c net.Conn) {
		first := make([]byte, 1)
		if _, err := c.Write(first); err != nil {
			return
		}
		if _, err := c.Read(first); err != nil {
			return
		}
		for first[0] == 'r' {
			if _, err := c.Write(part); err != nil {
				return
			}
		}
		<-stop
	})
	t.Cleanup(func() { close(stop) })
}

// startFlood floods until stop is called, which returns the result, or until the run is killed for
// memory. It returns when something has been refused.
func startFlood(t testing.TB, rt *runtime.NodeRuntime, program string, args ...string) (stop func() *runtime.Result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	up, ended := make(chan struct{}), make(chan *runtime.Result, 1)
	report := sync.OnceFunc(func() { close(up) })
	go func() {
		res, err := rt.Command(ctx, program, args, runtime.RunOptions{Timeout: -1, OnStdout: func([]byte) { report() }})
		if res == nil || err != nil && !errors.Is(err, context.Canceled) || err == nil && res.Cause != runtime.CauseMemory {
			t.Errorf("flood: %+v, %v", res, err)
			res = &runtime.Result{}
		}
		ended <- res
		report()
	}()
	<-up
	return sync.OnceValue(func() *runtime.Result { cancel(); return <-ended })
}

// A runtime that floods its network is refused more, and its neighbour's requests succeed. One that
// floods a server that reads nothing may be killed for the memory of its data.
func TestFloods(t *testing.T) {
	tier.Soak(t)
	serveInternet(t)
	serveFloods(t)
	neighbour := harness.Create(t, runtime.Options{Permissions: permissions(t, floodRules)})
	urls := slices.Repeat([]string{"http://api.example.com/"}, 25)
	for _, f := range floods {
		t.Run(f.mode, func(t *testing.T) {
			rt := harness.Create(t, runtime.Options{Permissions: permissions(t, floodRules), Limits: runtime.Limits{OpenFiles: 4096, Memory: 1 << 30}, Network: f.limits})
			stop := startFlood(t, rt, harness.Install(t, rt, "flood"), f.mode, f.host, f.port)
			defer stop()
			for _, text := range each(t, neighbour, urls) {
				if !isServed(text) {
					t.Errorf("the neighbour got %q", text)
				}
			}
			res := stop()
			if res.Cause == runtime.CauseMemory && f.mode == "write" {
				return
			}
			if !slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return d.Rule == f.limit && d.Source == runtime.SourceEgress }) {
				t.Errorf("denials %+v, cause %q", res.Denials, res.Cause)
			}
			if slices.ContainsFunc(res.Denials, func(d runtime.Denial) bool { return !strings.HasPrefix(d.Rule, "limits.") }) {
				t.Errorf("denials by rules: %+v", res.Denials)
			}
		})
	}
}

// each gets URLs, each with a new connection.
func each(t *testing.T, rt *runtime.NodeRuntime, urls []string) []string {
	t.Helper()
	args := append([]string{"--"}, urls...)
	const code = `
const got = {};
for (const [i, url] of process.argv.slice(3).entries()) {
	try {
		got[i] = await (await fetch(url, { headers: { connection: 'close' } })).text();
	} catch (err) {
		got[i] = err.cause?.code ?? err.message;
	}
}
__return(got);`
	got, _ := attempts(t, rt, code, args...)
	var list []string
	for _, text := range got {
		list = append(list, text)
	}
	if len(list) != len(urls) {
		t.Errorf("%d results", len(list))
	}
	return list
}
