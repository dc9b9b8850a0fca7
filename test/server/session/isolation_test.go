package session

import (
	"errors"
	"net/http"
	"testing"

	"gaol/runtime/client"
)

// testIsolation names the isolation of a sandbox.
func testIsolation(t *testing.T, c *client.Client) {
	for _, name := range []string{"", "native"} {
		sb := createIn(t, c, client.CreateOptions{Isolation: name})
		if info, err := sb.Info(soon(t)); err != nil || info.Isolation != "native" {
			t.Errorf("%q: %+v, %v", name, info, err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, status := range map[string]int{"runc": http.StatusForbidden, "oci=/bin/sh": http.StatusForbidden, "docker": http.StatusUnprocessableEntity} {
		_, err := c.Create(soon(t), client.CreateOptions{Isolation: name})
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != status {
			t.Errorf("%q: %v, want status %d", name, err, status)
		}
	}
}
