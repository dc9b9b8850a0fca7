package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

func TestDoctorJSON(t *testing.T) {
	store := filepath.Join(t.TempDir(), "store")
	got := new(fake).call(t, "", "doctor", "--json", "--store", store)
	var object struct {
		OK     *bool
		Checks []map[string]string
	}
	if err := json.Unmarshal([]byte(got.stdout), &object); err != nil || object.OK == nil || len(object.Checks) == 0 {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	for _, c := range object.Checks {
		if len(c) != 4 || c["name"] == "" || c["status"] == "" || c["detail"] == "" {
			t.Errorf("check %v: want name, status, detail and cure", c)
		}
		if _, found := c["cure"]; !found || (c["status"] == "ok") != (c["cure"] == "") {
			t.Errorf("check %v: want a cure for what is not ok, and for nothing else", c)
		}
	}
	for _, name := range []string{"isolation runc", "isolation crun", "isolation gvisor", "isolation microvm"} {
		i := slices.IndexFunc(object.Checks, func(c map[string]string) bool { return c["name"] == name })
		if i < 0 || object.Checks[i]["status"] != "ok" && object.Checks[i]["status"] != "optional" {
			t.Errorf("no check %q, or one that fails: %s", name, got.stdout)
		}
	}
	wantCode, wantLines := 0, 0
	if !*object.OK {
		wantCode, wantLines = report.ExitFailure, 1
	}
	if got.code != wantCode || strings.Count(got.stderr, "\n") != wantLines {
		t.Errorf("ok is %v, but exit status %d, standard error %q", *object.OK, got.code, got.stderr)
	}
	if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
}

func TestTryProgram(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fake   fake
		detail string
		err    string
	}{
		{"right", fake{guest: returns(runtime.Result{Value: []byte(`{"answer":42,"node":"v1"}`)})}, "Node v1 answered 42", ""},
		{"wrong", fake{guest: returns(runtime.Result{Value: []byte(`{"answer":41}`)})}, "", "exit code 0"},
		{"crash", fake{guest: returns(runtime.Result{ExitCode: 139, Stderr: []byte("a\nb")})}, "", "exit code 139, cause \"\": a b"},
		{"no jail", fake{createErr: errors.New("no jail")}, "", "no jail"},
		{"no end", fake{guest: returns(runtime.Result{Value: []byte(`{"answer":42}`)}), closeErr: errors.New("busy")}, "Node", "busy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &app{create: tc.fake.create}
			detail, err := a.tryProgram(context.Background(), "", "native")
			if !strings.Contains(detail, tc.detail) {
				t.Errorf("detail %q, want %q in it", detail, tc.detail)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}
