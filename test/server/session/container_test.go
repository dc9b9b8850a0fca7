package session

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

const (
	noSpawn = `{"childProcess": "deny"}`

	// spawnCode returns spawnValue in a sandbox with the permissions noSpawn.
	spawnCode  = `import { spawnSync } from 'node:child_process'; __return([process.getuid(), spawnSync('true').error?.code])`
	spawnValue = `[1000,"EPERM"]`
)

// TestContainer: requests and sessions create containers of runc where the settings list it.
func TestContainer(t *testing.T) {
	runc := harness.Runc(t)
	s := servertest.Start(t, servertest.Options{Settings: func(set *settings.Settings) {
		set.Allowed = append(set.Allowed, settings.Isolation{Name: "runc", Kind: runtime.IsolationOCI, OCI: runtime.OCIOptions{Runtime: runc}})
	}})
	t.Run("requests", func(t *testing.T) { testContainerRequests(t, s) })
	t.Run("session", func(t *testing.T) { testContainerSession(t, dial(t, s)) })
}

func testContainerRequests(t *testing.T, s *servertest.Server) {
	c := s.Client(t, servertest.User{UID: 61951, GID: 61951})
	body := map[string]any{"isolation": "runc", "permissions": json.RawMessage(noSpawn)}
	var box struct{ ID, Isolation string }
	r := servertest.Send(t, c, http.MethodPost, "/v1/sandboxes", body)
	r.Want(t, http.StatusCreated)
	if r.Into(t, &box); box.Isolation != "runc" {
		t.Errorf("%s", r.Body)
	}
	sandbox := "/v1/sandboxes/" + box.ID
	wantDenied(t, servertest.Send(t, c, http.MethodPost, sandbox+"/run", map[string]any{"code": spawnCode}))
	servertest.Send(t, c, http.MethodDelete, sandbox, nil).Want(t, http.StatusNoContent)
	body["code"] = spawnCode
	wantDenied(t, servertest.Send(t, c, http.MethodPost, "/v1/run", body))
}

// wantDenied fails the test unless the response is the result of spawnCode in a container.
func wantDenied(t *testing.T, r *servertest.Response) {
	t.Helper()
	var res struct {
		Value    json.RawMessage
		Denials  []runtime.Denial
		Launcher string
	}
	r.Want(t, http.StatusOK)
	if r.Into(t, &res); string(res.Value) != spawnValue || !hasSpawn(res.Denials) || res.Launcher != "exec" {
		t.Errorf("%s, want the value %s, a denial and the launcher exec", r.Body, spawnValue)
	}
}

func hasSpawn(all []runtime.Denial) bool {
	return slices.ContainsFunc(all, func(d runtime.Denial) bool { return d.Scope == "childProcess" })
}

func testContainerSession(t *testing.T, c *client.Client) {
	p, err := policy.Parse([]byte(noSpawn))
	if err != nil {
		t.Fatal(err)
	}
	sb := createIn(t, c, client.CreateOptions{Isolation: "runc", Permissions: p})
	if info, err := sb.Info(soon(t)); err != nil || info.Isolation != "runc" {
		t.Errorf("%+v, %v", info, err)
	}
	if res, err := sb.Run(soon(t), spawnCode, runtime.RunOptions{}); err != nil || string(res.Value) != spawnValue || !hasSpawn(res.Denials) {
		t.Errorf("%+v, %v, want the value %s and a denial", res, err, spawnValue)
	}
	if err := sb.Close(); err != nil {
		t.Error(err)
	}
}
