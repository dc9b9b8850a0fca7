package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"gaol/test/harness"
)

// published starts gaol run with ports of the host, and returns the addresses that it prints
// for those that it chooses.
func published(t *testing.T, count int, args ...string) (cmd *exec.Cmd, addresses []string) {
	t.Helper()
	args = append([]string{"run", "--timeout", "60s"}, args...)
	if store := os.Getenv(harness.StoreVar); store != "" {
		args = append(args, "--store", store)
	}
	cmd = exec.Command(harness.Gaol(t), args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for range count {
		lines.Scan()
		m := regexp.MustCompile(`^gaol: (\S+) leads to port 300\d of the program$`).FindStringSubmatch(lines.Text())
		if m == nil {
			t.Fatalf("standard error has %q", lines.Text())
		}
		addresses = append(addresses, m[1])
	}
	return cmd, addresses
}

// request returns the body of a response, over a separate connection.
func request(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// servers is a program with two servers. The first one's last response is large.
const servers = `
import http from 'node:http';
const big = 'x'.repeat(1 << 20);
const serve = (port, host) => http.createServer((req, res) => {
	if (req.url !== '/quit') return res.end('port ' + port);
	res.end(big, () => process.exit(7));
}).listen(port, host);
serve(3000, '127.0.0.1');
serve(3001, '::1');`

// Connections to ports of the host reach the program's servers, whichever permissions it has
// else, from before it listens until it exits. The last response is complete.
func TestPublish(t *testing.T) {
	for name, flags := range map[string][]string{
		"default": nil,
		"strict":  {"--preset", "strict"},
		"outside": {"--allow-net", "api.example.com:443"},
		"json":    {"--json"},
		"policy":  {"--permissions", `{"network":{"rules":[{"mode":"allow","patterns":["tcp://10.0.0.0/8:80"]}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, at := published(t, 2, append([]string{"--publish", "0:3000", "--publish", "[::1]:0:3001", "-e", servers}, flags...)...)
			if !strings.HasPrefix(at[0], "127.0.0.1:") || !strings.HasPrefix(at[1], "[::1]:") {
				t.Errorf("addresses %v", at)
			}
			for i, address := range at {
				for range 3 {
					if got := request(t, "http://"+address+"/"); got != fmt.Sprintf("port %d", 3000+i) {
						t.Errorf("%s: %q", address, got)
					}
				}
			}
			if got := request(t, "http://"+at[0]+"/quit"); len(got) != 1<<20 {
				t.Errorf("the last response has %d bytes", len(got))
			}
			if got := code(t, cmd); got != 7 {
				t.Errorf("exit status %d", got)
			}
			if c, err := net.Dial("tcp", at[0]); err == nil {
				c.Close()
				t.Error("it is still served")
			}
		})
	}
}
