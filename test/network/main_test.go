package network

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
)

func TestMain(m *testing.M) { os.Exit(internettest.Main(func() int { return harness.RunTests(m) })) }

// Addresses of the tests' internet.
var (
	publicV4 = netip.MustParseAddr("93.184.215.14")
	publicV6 = netip.MustParseAddr("2606:2800:220:1::14")
	otherV4  = netip.MustParseAddr("151.101.1.6")
	private  = netip.MustParseAddr("10.1.2.3")
	metadata = netip.MustParseAddr("169.254.169.254")
)

func serveHTTP(t testing.TB, a netip.Addr, port uint16, h http.Handler, config *tls.Config) {
	t.Helper()
	l, err := net.Listen("tcp", netip.AddrPortFrom(a, port).String())
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, h, config)
}

// serveOn serves HTTP, or HTTPS, until the test ends.
func serveOn(t testing.TB, l net.Listener, h http.Handler, config *tls.Config) {
	server := &http.Server{Handler: h, TLSConfig: config}
	var serving sync.WaitGroup
	serving.Go(func() {
		if config != nil {
			_ = server.ServeTLS(l, "", "")
		} else {
			_ = server.Serve(l)
		}
	})
	t.Cleanup(func() { server.Close(); serving.Wait() })
}

// needBPF skips tests of how BPF programs refuse connections.
func needBPF(t testing.TB) {
	t.Helper()
	if harness.InGVisor() {
		t.Skip("gVisor accepts connections and resets those that are denied: test/gvisor tests this")
	}
}

// permissions returns those with a network scope.
func permissions(t testing.TB, network string) policy.Permissions {
	t.Helper()
	p, err := policy.Parse([]byte(`{"network":` + network + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eachLauncher runs a test with a runtime of each launcher.
func eachLauncher(t *testing.T, network string, f func(*testing.T, *runtime.NodeRuntime)) {
	p := permissions(t, network)
	for _, l := range harness.SomeLaunchers() {
		t.Run(l.String(), func(t *testing.T) {
			o := harness.Options(runtime.Options{Permissions: p})
			o.Launcher = l
			f(t, harness.CreateExact(t, o))
		})
	}
}

// attempts runs a program that prints one JSON object with a text for each attempt.
func attempts(t *testing.T, rt *runtime.NodeRuntime, code string, args ...string) (map[string]string, *runtime.Result) {
	t.Helper()
	return attemptsWith(t, rt, code, runtime.RunOptions{Args: args})
}

func attemptsWith(t *testing.T, rt *runtime.NodeRuntime, code string, o runtime.RunOptions) (map[string]string, *runtime.Result) {
	t.Helper()
	res := harness.Run(t, rt, code, o)
	var got map[string]string
	if err := json.Unmarshal(res.Value, &got); err != nil {
		t.Fatalf("value %s, exit code %d, cause %q, usage %+v, stderr %s", res.Value, res.ExitCode, res.Cause, res.Usage, res.Stderr)
	}
	return got, res
}

// fetching fetches each of its arguments, one after the other, each by a new connection.
const fetching = `
process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
process.removeAllListeners('warning');
const got = {};
for (const url of process.argv.slice(2)) {
	try {
		got[url] = await (await fetch(url, { headers: { connection: 'close' } })).text();
	} catch (err) {
		got[url] = err.cause?.code ?? err.cause?.errors?.[0]?.code ?? err.message;
	}
}
__return(got);`

func isServed(text string) bool { return strings.HasPrefix(text, "served ") }

func sendLine(text string) func(net.Conn) {
	return func(c net.Conn) { _, _ = io.WriteString(c, text) }
}

func serveNames(t testing.TB) *internettest.Names {
	t.Helper()
	return internettest.ServeNames(t, map[string][]netip.Addr{
		"api.example.com":    {publicV4, publicV6},
		"www.example.com":    {publicV4},
		"other.test":         {otherV4},
		"private.test":       {private},
		"metadata.test":      {metadata},
		"loopback.test":      {netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()},
		"mapped.test":        {netip.MustParseAddr("::ffff:10.1.2.3")},
		"nat64.test":         {netip.MustParseAddr("64:ff9b::a01:203")},
		"redirect.test":      {otherV4},
		"xn--bcher-kva.test": {publicV4},
	})
}
