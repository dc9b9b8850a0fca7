package attack

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/runtime"
	"gaol/test/server/servertest"
)

// A tenant chooses among the operator's isolations by their names. No request names a program of the
// machine that would be started as root.
func TestIsolations(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t, servertest.Options{Settings: func(set *settings.Settings) {
		set.Allowed = append(set.Allowed, settings.Isolation{Name: "own", Kind: runtime.IsolationOCI, OCI: runtime.OCIOptions{Runtime: program}})
	}})
	c := s.Client(t, mallory)
	for name, status := range map[string]int{
		"oci=" + program: http.StatusForbidden, "oci=/bin/sh": http.StatusForbidden, "runc": http.StatusForbidden, "crun": http.StatusForbidden,
		program: http.StatusUnprocessableEntity, "docker": http.StatusUnprocessableEntity, "NATIVE": http.StatusUnprocessableEntity, "../own": http.StatusUnprocessableEntity,
		"oci=own": http.StatusUnprocessableEntity, "own\x00": http.StatusUnprocessableEntity, strings.Repeat("a", 256): http.StatusUnprocessableEntity,
	} {
		for path, body := range map[string]map[string]any{"/v1/sandboxes": {}, "/v1/run": {"code": "1"}, "/v1/evaluate": {"code": "1"}} {
			body = maps.Clone(body)
			body["isolation"] = name
			r := servertest.Send(t, c, http.MethodPost, path, body)
			if p := r.Want(t, status); strings.Contains(p.Detail, filepath.Dir(program)) && !strings.Contains(name, program) {
				t.Errorf("%q: the problem names files of the host: %s", name, r.Body)
			}
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a request has started a program of the machine")
	}
	testNamedIsolation(t, s)
}

// testNamedIsolation names the isolation that a sandbox has by default, too.
func testNamedIsolation(t *testing.T, s *servertest.Server) {
	c := s.Client(t, alice)
	type box struct{ ID, Isolation string }
	for _, body := range []string{`{}`, `{"isolation": ""}`, `{"isolation": "native"}`} {
		var made, got box
		var list struct{ Sandboxes []box }
		r := servertest.Send(t, c, http.MethodPost, "/v1/sandboxes", body)
		r.Want(t, http.StatusCreated)
		r.Into(t, &made)
		servertest.Send(t, c, http.MethodGet, "/v1/sandboxes/"+made.ID, nil).Into(t, &got)
		servertest.Send(t, c, http.MethodGet, "/v1/sandboxes", nil).Into(t, &list)
		if made.Isolation != "native" || got != made || len(list.Sandboxes) != 1 || list.Sandboxes[0] != made {
			t.Errorf("%s: created %+v, got %+v, listed %+v", body, made, got, list)
		}
		servertest.Send(t, c, http.MethodDelete, "/v1/sandboxes/"+made.ID, nil).Want(t, http.StatusNoContent)
	}
	var run struct{ Value any }
	r := servertest.Send(t, c, http.MethodPost, "/v1/run", `{"code": "__return(1)", "isolation": "native"}`)
	r.Want(t, http.StatusOK)
	if r.Into(t, &run); run.Value != 1.0 {
		t.Errorf("%s", r.Body)
	}
}
