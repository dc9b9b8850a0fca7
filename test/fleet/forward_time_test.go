package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/tier"
)

// TestForwardingTime compares requests to the node that has a sandbox with requests to another node, in turns. It prints medians and
// does not judge them.
func TestForwardingTime(t *testing.T) {
	tier.Alone(t)
	c := startCluster(t, 2)
	owner := c.nodes[0].as(t, ada)
	path := owner.create(object{"limits": object{"diskBytes": 256 << 20}})
	callers := [2]caller{owner, c.nodes[1].as(t, ada)}
	owner.value(path+"/run", `require('fs').writeFileSync('big', Buffer.alloc(100e6)); __return(0)`)

	compare(t, "run", 60, func(i int) []time.Duration {
		return timed(func() { callers[i].value(path+"/run", `__return(1)`) })
	})
	var echoes [2]func()
	for i, n := range c.nodes {
		echoes[i] = echo(t, n.dial(t, ada).Sandbox(strings.TrimPrefix(path, "/v1/sandboxes/")))
	}
	compare(t, "100 bytes to a process and back, by session", 500, func(i int) []time.Duration { return timed(echoes[i]) })
	compare(t, "event of a run", 4, func(i int) []time.Duration { return delays(t, callers[i], path) })
	compare(t, "100 MB", 5, func(i int) []time.Duration {
		return timed(func() {
			res := callers[i].request("GET", path+"/files?path="+url.QueryEscape("/workspace/big"), "", nil)
			defer res.Body.Close()
			if n, err := io.Copy(io.Discard, res.Body); n != 100e6 || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
		})
	})
}

// compare measures something n times with each of two nodes, and prints the medians.
func compare(t *testing.T, what string, n int, measure func(node int) []time.Duration) {
	t.Helper()
	var all [2][]time.Duration
	for range n {
		for i := range all {
			all[i] = append(all[i], measure(i)...)
		}
	}
	for i := range all {
		slices.Sort(all[i])
	}
	direct, forwarded := all[0][len(all[0])/2], all[1][len(all[1])/2]
	t.Logf("%s: direct %v, forwarded %v: %.2f times, %v more", what, direct, forwarded, float64(forwarded)/float64(direct), forwarded-direct)
}

// timed returns how long do takes.
func timed(do func()) []time.Duration {
	begin := time.Now()
	do()
	return []time.Duration{time.Since(begin)}
}

// echo starts a process that repeats its input. The function sends it a line and waits for the same one.
func echo(t *testing.T, sb *client.Sandbox) func() {
	t.Helper()
	p, err := sb.Spawn(soon(t), "cat", nil, runtime.SpawnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, line := bufio.NewReader(p.Stdout), strings.Repeat("x", 99)+"\n"
	return func() {
		if _, err := io.WriteString(p.Stdin, line); err != nil {
			t.Fatal(err)
		}
		if got, err := out.ReadString('\n'); got != line || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// delays returns how long lines that a program prints take to arrive as events.
func delays(t *testing.T, c caller, path string) (all []time.Duration) {
	t.Helper()
	code := `let n = 0; const i = setInterval(() => { console.log(String(process.hrtime.bigint())); if (++n === 100) clearInterval(i) }, 5)`
	res := c.request("POST", path+"/run", "text/event-stream", object{"code": code})
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var event struct{ Type, Text string }
		if !ok || json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		var printed int64
		if _, err := fmt.Sscan(event.Text, &printed); err != nil {
			continue
		}
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Duration(now.Nano()-printed))
	}
	if len(all) < 50 { // lines that were printed together are one event
		t.Fatalf("%d events", len(all))
	}
	return all
}

// request sends a request whose response the caller reads and closes.
func (c caller) request(method, path, accept string, body any) *http.Response {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, "http://gaol"+path, strings.NewReader(string(text)))
	if err != nil {
		c.t.Fatal(err)
	}
	if body == nil {
		r.Body = http.NoBody
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accept)
	res, err := c.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
	return res
}
