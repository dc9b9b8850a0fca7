package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"gaol/test/harness"
)

// gaol run --host-port lets the program connect to the host's port, and to no other one.
func TestHostPort(t *testing.T) {
	serve := func() (port int) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
		t.Cleanup(s.Close)
		return s.Listener.Addr().(*net.TCPAddr).Port
	}
	named, other := serve(), serve()
	code := fmt.Sprintf(`for (const port of [%d, %d]) console.log(await fetch('http://localhost:' + port).then(r => r.text(), err => err.cause.code))`, named, other)
	out, err := exec.Command(harness.Gaol(t), "run", "--host-port", fmt.Sprint(named), "-e", code).CombinedOutput()
	if want := "reached\nECONNREFUSED\n"; err != nil || string(out) != want {
		t.Errorf("%v, %q, want %q", err, out, want)
	}
	for value, want := range map[string]string{"0": "want a port from 1 to 65535", "65536": "want a port", "3000:3000": "want a port", "": "want a port"} {
		out, err := exec.Command(harness.Gaol(t), "run", "--host-port", value, "-e", "1").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("--host-port %q: %v, %s", value, err, out)
		}
	}
	out, err = exec.Command(harness.Gaol(t), "run", "--host-port", "80", "--host-port", "80", "-e", "1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--host-port: 80 is listed twice") {
		t.Errorf("%v, %s", err, out)
	}
}
