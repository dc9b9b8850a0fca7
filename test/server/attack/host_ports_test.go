package attack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/server/servertest"
)

// A tenant reaches a port of the machine's localhost if the operator allows the port, the request names
// it, and its permissions allow it.
func TestHostPorts(t *testing.T) {
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reached") }))
	defer machine.Close()
	port := machine.Listener.Addr().(*net.TCPAddr).Port
	s := servertest.Start(t, servertest.Options{Settings: func(set *settings.Settings) {
		set.HostPorts = []settings.PortRange{{First: uint16(port), Last: uint16(port)}}
	}})
	c := s.Client(t, mallory)
	allow := func(port int) map[string]any {
		rule := map[string]any{"mode": "allow", "operations": []string{"fetch", "connect"}, "patterns": []string{fmt.Sprintf("tcp://localhost:%d", port)}}
		return map[string]any{"network": map[string]any{"rules": []any{rule}}}
	}
	code := fmt.Sprintf(`const text = await fetch('http://127.0.0.1:%d/').then(r => r.text(), err => err.cause.code); __return(text)`, port)
	for _, try := range []struct {
		name, want string
		status     int
		body       map[string]any
	}{
		{"named", `"reached"`, http.StatusOK, map[string]any{"hostPorts": []int{port}, "permissions": allow(port)}},
		{"not named", `"ECONNREFUSED"`, http.StatusOK, map[string]any{"permissions": map[string]any{"network": "allow"}}},
		{"named, without permissions", `"reached"`, http.StatusOK, map[string]any{"hostPorts": []int{port}}},
		{"not permitted", "", http.StatusUnprocessableEntity, map[string]any{"hostPorts": []int{port}, "permissions": map[string]any{"network": "deny"}}},
		{"not allowed", "", http.StatusForbidden, map[string]any{"hostPorts": []int{port, port ^ 1}, "permissions": map[string]any{"network": "allow"}}},
	} {
		try.body["code"] = code
		r := servertest.Send(t, c, http.MethodPost, "/v1/run", try.body)
		r.Want(t, try.status)
		if try.status != http.StatusOK {
			continue
		}
		var result struct{ Value any }
		if r.Into(t, &result); fmt.Sprintf("%q", result.Value) != try.want {
			t.Errorf("%s: %s", try.name, r.Body)
		}
	}
}
