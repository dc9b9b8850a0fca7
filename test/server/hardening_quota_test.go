package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/harness"
	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// tenantCgroups lists the cgroups of tenants in all hierarchies.
func tenantCgroups() []string {
	return append(harness.Glob("/sys/fs/cgroup"+harness.Parent+"/tenants*"), harness.Glob("/sys/fs/cgroup/*"+harness.Parent+"/tenants*")...)
}

// Nothing of a tenant remains after Close: no cgroup in any hierarchy.
func TestCloseRemovesCgroups(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		s := servertest.Start(t, servertest.Options{})
		for n := range 3 {
			c := s.Client(t, servertest.User{UID: 61100 + n, GID: 61100})
			servertest.Send(t, c, "POST", "/v1/sandboxes", "{}").Want(t, http.StatusCreated)
			servertest.Send(t, c, "POST", "/v1/run", `{"code":"1"}`).Want(t, http.StatusOK)
		}
		if len(tenantCgroups()) == 0 {
			t.Error("tenants have no cgroups")
		}
	})
	if left := tenantCgroups(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A flood of one tenant does not hold up another one, whatever it consists of. Run it as a benchmark to see
// the ratios: go test -bench Fairness -run - ./test/server
func BenchmarkFairness(b *testing.B) {
	for _, f := range floods {
		b.Run(f.name, func(b *testing.B) {
			quiet, flooded := fairness(b, f, 40)
			b.ReportMetric(float64(flooded)/float64(quiet), "ratio")
			b.ReportMetric(float64(quiet.Microseconds())/1000, "quiet-ms")
			b.ReportMetric(float64(flooded.Microseconds())/1000, "flooded-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// flood is a tenant's requests on many connections.
type flood struct {
	name, method, path, body string
}

var floods = []flood{
	{"runs", "POST", "/v1/run", `{"code":"1"}`},
	{"spinning", "POST", "/v1/run", `{"code":"for(;;);","timeoutMs":3000}`},
	{"creates", "POST", "/v1/sandboxes", `{"idleTimeoutMs":100}`},
	{"bad", "POST", "/v1/run", `{"code":1,"args":[1,2,3]}`},
	{"lists", "GET", "/v1/sandboxes", ""},
}

// fairness returns the median times of another tenant's runs without and with a flood.
func fairness(t testing.TB, f flood, runs int) (quiet, flooded time.Duration) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.Tenant.Requests = 100 }})
	victim, attacker := s.Client(t, user), s.Client(t, servertest.User{UID: 61002, GID: 61002})
	measure := func() time.Duration {
		times := make([]time.Duration, 0, runs)
		for range runs {
			start := time.Now()
			servertest.Send(t, victim, "POST", "/v1/run", `{"code":"1"}`).Want(t, http.StatusOK)
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		return times[len(times)/2]
	}
	measure() // fills the pool
	quiet = measure()
	stop := make(chan struct{})
	var flooding sync.WaitGroup
	for range 40 {
		flooding.Go(func() { sendUntil(stop, attacker, f) })
	}
	flooded = measure()
	close(stop)
	flooding.Wait()
	return quiet, flooded
}

// sendUntil sends the flood's request again and again. A client that is refused tries again a little
// later, much earlier than in the response.
func sendUntil(stop <-chan struct{}, c *http.Client, f flood) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		r, err := http.NewRequest(f.method, "http://gaol"+f.path, strings.NewReader(f.body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		res, err := c.Do(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusTooManyRequests {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// Very many idle connections take little memory, and new requests are served.
func TestIdleConnections(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	before := heap()
	count := harness.Fewer(10000, 2000)
	var all []net.Conn
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	for n := range 10 {
		u := servertest.User{UID: 61200 + n, GID: 61200}
		err := u.Do(func() error {
			for range count / 10 {
				c, err := net.Dial("unix", s.Socket)
				if err != nil {
					return err
				}
				all = append(all, c)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	servertest.Send(t, s.Client(t, user), "POST", "/v1/run", `{"code":"1"}`).Want(t, http.StatusOK)
	servertest.Send(t, s.Client(t, servertest.User{UID: 61200, GID: 61200}), "GET", "/v1/sandboxes", nil).Want(t, http.StatusOK)
	if each := (heap() - before) / int64(count); each > 40<<10 {
		t.Errorf("%d bytes for each connection", each)
	} else {
		t.Logf("%d bytes for each connection", each)
	}
}

// heap returns the memory of the server's process in bytes, with stacks.
func heap() int64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TCP with TLS serves the API, and refuses plain HTTP and old versions of TLS.
func TestTLS(t *testing.T) {
	pair, pool := servertest.Certificate(t)
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "ci"), TLS: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}})
	get := "GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + servertest.Token("ci") + "\r\nConnection: close\r\n\r\n"
	client := &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2", "http/1.1"}}
	if list := servertest.Raw(t, s.DialTCP(t, client), get, 2); len(list) != 1 || list[0].Status != http.StatusOK {
		t.Errorf("%d responses", len(list))
	}
	if list := servertest.Raw(t, s.DialTCP(t, client), "x\r\n\r\n", 2); len(list) != 1 || list[0].Status != http.StatusBadRequest {
		t.Errorf("%d responses to a malformed request", len(list))
	}
	if list := servertest.Raw(t, s.DialTCP(t, nil), get, 2); len(list) != 1 || list[0].Status != http.StatusBadRequest || !strings.Contains(string(list[0].Body), "HTTPS") {
		t.Errorf("%d responses to plain HTTP", len(list))
	}
	old := client.Clone()
	old.MaxVersion = tls.VersionTLS11
	if list := servertest.Raw(t, s.DialTCP(t, old), get, 1); len(list) != 0 {
		t.Error("TLS 1.1 is accepted")
	}
}

// A thousand sandboxes of fifty tenants, each of which is used now and then, take constant memory. The
// duration is GAOL_TEST_SANDBOXES.
func TestThousandSandboxes(t *testing.T) {
	tier.Alone(t)
	duration, err := time.ParseDuration(os.Getenv("GAOL_TEST_SANDBOXES"))
	if err != nil {
		t.Skip("takes a minute or more: GAOL_TEST_SANDBOXES is not set")
	}
	const tenants, each = 50, 20
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) {
		o.Server.Sandboxes, o.Server.Disk, o.Server.Memory = 2*tenants*each, 1<<40, 1<<40
		o.Tenant.Disk, o.Tenant.Memory = 1<<40, 1<<40
	}})
	var clients [tenants]*http.Client
	var boxes [tenants][]string
	for n := range tenants {
		clients[n] = s.Client(t, servertest.User{UID: 61300 + n, GID: 61300})
		for range each {
			var box struct{ ID string }
			r := servertest.Send(t, clients[n], "POST", "/v1/sandboxes", "{}")
			r.Want(t, http.StatusCreated)
			r.Into(t, &box)
			boxes[n] = append(boxes[n], box.ID)
		}
	}
	runs, samples := 0, []int64{}
	for start, next := time.Now(), time.Now(); time.Since(start) < duration; runs++ {
		n := runs % tenants
		r := servertest.Send(t, clients[n], "POST", "/v1/sandboxes/"+boxes[n][runs/tenants%each]+"/run", `{"code":"__return(1)"}`)
		r.Want(t, http.StatusOK)
		clients[n].CloseIdleConnections()
		if time.Now().After(next) {
			next = next.Add(duration / 20)
			samples = append(samples, resident(t)>>20)
		}
	}
	t.Logf("%d runs, resident memory in MiB: %v", runs, samples)
	third := len(samples) / 3
	early, late := slices.Max(samples[third:2*third]), slices.Max(samples[2*third:])
	if late > early+early/20+4 {
		t.Errorf("memory grows: %d MiB, then %d MiB", early, late)
	}
}

// resident returns the resident memory of this process in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
