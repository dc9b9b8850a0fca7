package service

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/requestjson"
)

// withIsolations returns a function that gives settings the isolations of a configuration.
func withIsolations(t *testing.T, config string) func(*settings.Settings) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := settings.Read(path, settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	return func(s *settings.Settings) { *s = *set }
}

// isolated are the options that a request's isolation sets.
type isolated struct {
	Kind     runtime.Isolation
	Runtime  string
	Launcher runtime.Launcher
	Zygote   bool
}

func isolatedBy(o runtime.Options) isolated {
	return isolated{o.Isolation, o.OCI.Runtime, o.Launcher, o.Zygote != runtime.ZygoteOptions{}}
}

func TestIsolationOfRequests(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kata")
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	s, created := newService(t, withIsolations(t, `{"isolation": "runc", "isolations": ["native", "oci=`+program+`"]}`))
	me := &tenant.Tenant{Name: "uid:1"}
	asks := map[string]func(requestjson.Tree) error{
		"sandbox": func(tree requestjson.Tree) error {
			_, err := s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: me}, &requestjson.SandboxRequest{Tree: tree})
			return err
		},
		"run": func(tree requestjson.Tree) error {
			tree.Hostname = "h" // or the pool would create it
			_, err := s.Run(t.Context(), &Call{Service: s, Tenant: me}, &requestjson.RunRequest{Tree: tree})
			return err
		},
		"evaluate": func(tree requestjson.Tree) error {
			tree.Hostname = "h"
			_, err := s.Evaluate(t.Context(), &Call{Service: s, Tenant: me}, &requestjson.EvaluateRequest{Tree: tree})
			return err
		},
	}
	runc := isolated{runtime.IsolationOCI, "runc", runtime.LauncherExec, false}
	for kind, ask := range asks {
		for name, want := range map[string]isolated{
			"": runc, "runc": runc, "kata": {runtime.IsolationOCI, program, runtime.LauncherExec, false},
			"native": {runtime.IsolationNative, "", runtime.LauncherZygote, true},
		} {
			*created = nil
			if err := ask(requestjson.Tree{Isolation: name}); err == nil || len(*created) != 1 { // newService creates nothing
				t.Fatalf("%s, %q: %v, %v", kind, name, err, created)
			}
			if diff := cmp.Diff(want, isolatedBy((*created)[0])); diff != "" {
				t.Errorf("%s, %q (-want +got):\n%s", kind, name, diff)
			}
		}
		for name, code := range map[string]Code{"crun": Forbidden, "oci=" + program: Forbidden, "oci=/bin/sh": Forbidden, "docker": Invalid, "oci=kata": Invalid, program: Invalid} {
			*created = nil
			err := ask(requestjson.Tree{Isolation: name})
			if e, ok := errors.AsType[*Error](err); !ok || e.Code != code || !strings.Contains(e.Error(), "the server allows runc, native, kata") || len(*created) > 0 {
				t.Errorf("%s, %q: %v, want %s", kind, name, err, code)
			}
		}
	}
}

// By default nothing but the native isolation may be named.
func TestDefaultIsolation(t *testing.T) {
	s, created := newService(t, nil)
	for name, allowed := range map[string]bool{"": true, "native": true, "runc": false, "oci=/bin/sh": false} {
		*created = nil
		_, _ = s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:1"}}, &requestjson.SandboxRequest{Tree: requestjson.Tree{Isolation: name}})
		if len(*created) > 0 != allowed {
			t.Errorf("%q: %v", name, *created)
		}
	}
}

// A client that is trusted like root may name a path. Its mistakes are reported as such.
func TestIsolationOfTrustedClient(t *testing.T) {
	s, created := newService(t, func(set *settings.Settings) { *set = *settings.Trusted() })
	create := func(name string) error {
		*created = nil
		_, err := s.CreateSandbox(t.Context(), &Call{Service: s, Tenant: &tenant.Tenant{Name: "uid:0"}}, &requestjson.SandboxRequest{Tree: requestjson.Tree{Isolation: name}})
		return err
	}
	if err := create("oci=/bin/sh"); len(*created) != 1 || (*created)[0].OCI.Runtime != "/bin/sh" {
		t.Errorf("%v, %+v", err, *created)
	}
	for name, want := range map[string]string{"docker": "not one of native", "oci=/nosuch": "no such file"} {
		err := create(name)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != Invalid || !strings.Contains(e.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// Sandboxes that other packages create have the default isolation.
func TestIsolationOfOthers(t *testing.T) {
	s, created := newService(t, withIsolations(t, `{"isolation": "crun", "isolations": ["native"]}`))
	me := &tenant.Tenant{Name: "uid:1"}
	place := s.runnerOptions(me, runnerKey{}).Sandbox
	if place.Isolation != runtime.IsolationOCI || place.OCI.Runtime != "crun" || place.Zygote != (runtime.ZygoteOptions{}) {
		t.Errorf("%+v", place)
	}
	if _, err := s.NewSession(me).CallTool(t.Context(), "sandbox_init", nil); err == nil || len(*created) != 1 {
		t.Fatalf("%v, %d created", err, len(*created))
	}
	if got, want := isolatedBy((*created)[0]), (isolated{runtime.IsolationOCI, "crun", runtime.LauncherExec, false}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The server is ready only if all isolations work.
func TestCheckIsolations(t *testing.T) {
	s, created := newService(t, withIsolations(t, `{"isolation": "runc", "isolations": ["native", "crun"]}`))
	err := s.Check(t.Context())
	var asked []string
	for _, o := range *created {
		asked = append(asked, o.OCI.Runtime)
	}
	if !cmp.Equal(asked, []string{"runc", "", "crun"}) || !strings.Contains(err.Error(), "isolation crun: created") {
		t.Errorf("%v, %q", err, asked)
	}
}
