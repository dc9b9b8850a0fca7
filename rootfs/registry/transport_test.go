package registry

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"gaol/rootfs/oci"
)

// TestTransportRefuses checks which addresses a registry must not refer to.
func TestTransportRefuses(t *testing.T) {
	for _, tc := range []struct {
		registry, to string
		refused      bool
	}{
		{"registry.example", "http://registry.example/v2/", true},
		{"registry.example", "http://127.0.0.1:1/token", true},
		{"registry.example", "https://127.0.0.1:1/token", true},
		{"registry.example", "https://localhost:1/token", true},
		{"registry.example", "https://[::1]:1/token", true},
		{"10.0.0.1:5000", "http://10.0.0.1:5000/v2/", true},
		{"127.0.0.1:5000", "http://registry.example/v2/", true},
		{"127.0.0.1:5000", "http://127.0.0.1:1/v2/", false},
		{"localhost:5000", "http://localhost:1/v2/", false},
		{"[::1]:5000", "http://[::1]:1/v2/", false},
	} {
		c := newTransport(tc.registry, time.Second)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.to, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if errors.Is(err, oci.ErrInsecure) != tc.refused { // nothing listens at the other addresses
			t.Errorf("%s to %s: %v", tc.registry, tc.to, err)
		}
		c.base.CloseIdleConnections()
	}
}
