package batch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// A key names one batch run, from its submission on.
func TestSubmit(t *testing.T) {
	w := newWorld(t)
	first := w.submit(t, "a")
	if first.Key != "a" || first.State != resultjson.BatchQueued || first.Submitted.IsZero() || first.Attempts != 0 {
		t.Errorf("%+v", first)
	}
	repeat := func(state resultjson.BatchState, attempts int) {
		t.Helper()
		again := w.submit(t, "a")
		if again.State != state || again.Attempts != attempts || !again.Submitted.Equal(first.Submitted) {
			t.Errorf("submitted again: %+v, want %s, first %+v", again, state, first)
		}
		for what, other := range map[string]*requestjson.SubmitRequest{
			"other code":      program1("a", "b"),
			"other arguments": {Key: "a", Code: "a", Start: requestjson.Start{Args: []string{"1"}}},
			"other limits":    {Key: "a", Code: "a", Tree: requestjson.Tree{Limits: &requestjson.Limits{Pids: 3}}},
			"a command":       {Key: "a", Command: "a"},
		} {
			run, err := w.Submit(t.Context(), ada, other)
			if wantCode(t, what, err, service.Invalid); run != nil {
				t.Errorf("%s: %+v", what, run)
			}
		}
	}
	repeat(resultjson.BatchQueued, 0)
	worker := w.newMachine(t, machineOptions{})
	c := worker.next(t, "a")
	if c.path != "/v1/run" || c.tenant != ada.Name {
		t.Errorf("%s of %s", c.path, c.tenant)
	}
	repeat(resultjson.BatchRunning, 1)
	c.exit(7)
	run := w.wantExit(t, "a", 7)
	if string(run.Result.Stdout) != "a" || run.Attempts != 1 || run.Done.Before(run.Submitted) {
		t.Errorf("%+v %+v", run, run.Result)
	}
	repeat(resultjson.BatchDone, 1)
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "a") })
	repeat(resultjson.BatchDone, 1)

	keys := map[string]bool{}
	for range 3 {
		run, err := w.Submit(t.Context(), ada, program1("", "no key"))
		if err != nil {
			t.Fatal(err)
		}
		keys[run.Key] = true
		worker.next(t, "no key").exit(0)
	}
	if len(keys) != 3 || keys[""] {
		t.Errorf("keys %v", keys)
	}
	if _, err := w.Submit(t.Context(), ada, &requestjson.SubmitRequest{Key: "c", Command: "sh", Start: requestjson.Start{Args: []string{"-c"}}}); err != nil {
		t.Fatal(err)
	}
	c = worker.next(t, "sh")
	if c.path != "/v1/command" || !strings.Contains(string(c.input), `"args":["-c"]`) {
		t.Errorf("%s %s", c.path, c.input)
	}
	c.exit(0)
	w.wantExit(t, "c", 0)
}

// Of many clients that submit the same at the same time, all get the same batch run, which is made once.
func TestSubmitTogether(t *testing.T) {
	w := newWorld(t)
	var submitters sync.WaitGroup
	for range 20 {
		submitters.Go(func() {
			if run, err := w.Submit(t.Context(), ada, program1("a", "a")); err != nil || run.Key != "a" {
				t.Errorf("%+v %v", run, err)
			}
		})
	}
	worker := w.newMachine(t, machineOptions{})
	worker.next(t, "a").exit(1)
	submitters.Wait()
	w.wantExit(t, "a", 1)
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "a") })
	if len(worker.calls) > 0 {
		t.Errorf("it was made %d times more", len(worker.calls))
	}
}

// Tenants do not see each other's batch runs: a key of another one is as an unused one.
func TestTenants(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	tenants := map[string]*tenant.Tenant{}
	for i, name := range []string{"token:a", "token:ab", "uid:1"} {
		tenants[name] = &tenant.Tenant{Name: name}
		for _, key := range []string{"key", "bkey"} {
			if _, err := w.Submit(t.Context(), tenants[name], program1(key, fmt.Sprint(name, i, key))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 6 {
		c := receive(t, "call", worker.calls)
		if !strings.HasPrefix(c.code, c.tenant) {
			t.Errorf("%s as %s", c.code, c.tenant)
		}
		c.exit(0)
	}
	for i, name := range []string{"token:a", "token:ab", "uid:1"} {
		err := w.Follow(t.Context(), tenants[name], "key", func(run *resultjson.BatchRun) error {
			if want := fmt.Sprint(name, i, "key"); run.Result != nil && string(run.Result.Stdout) != want {
				t.Errorf("%s has the result of %s", want, run.Result.Stdout)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, key := range []string{"key", "bkey", "missing", strings.Repeat("x", 255), "*", ">", "a.b", ""} {
		stranger := &tenant.Tenant{Name: "token:stranger"}
		_, getErr := w.Get(t.Context(), stranger, key)
		_, cancelErr := w.Cancel(t.Context(), stranger, key)
		followErr := w.Follow(t.Context(), stranger, key, func(run *resultjson.BatchRun) error { return fmt.Errorf("%+v", run) })
		for what, err := range map[string]error{"Get": getErr, "Cancel": cancelErr, "Follow": followErr} {
			if !errors.Is(err, errNone) {
				t.Errorf("%s of %q: %v, want %v", what, key, err, errNone)
			}
		}
	}
}

// A batch run cannot use folders of the server's machine, and its output and request are small.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	modules := func(path string) requestjson.Tree {
		return requestjson.Tree{NodeModules: requestjson.NodeModules{HostPath: path}}
	}
	for what, tc := range map[string]struct {
		in   requestjson.SubmitRequest
		want service.Code // empty: it is accepted
	}{
		"mounts":                   {requestjson.SubmitRequest{Code: "1", Tree: requestjson.Tree{Mounts: []requestjson.Mount{{Source: "a", Target: "/b"}}}}, service.Invalid},
		"a host folder":            {requestjson.SubmitRequest{Code: "1", Tree: modules("/srv/node_modules")}, service.Invalid},
		"a relative folder":        {requestjson.SubmitRequest{Code: "1", Tree: modules("./snapshot:a")}, service.Invalid},
		"a snapshot":               {requestjson.SubmitRequest{Code: "1", Tree: modules("snapshot:a")}, ""},
		"a command and code":       {requestjson.SubmitRequest{Code: "1", Command: "sh"}, service.Invalid},
		"a command and a name":     {requestjson.SubmitRequest{Name: "a.mjs", Command: "sh"}, service.Invalid},
		"much output":              {requestjson.SubmitRequest{Code: "1", Tree: requestjson.Tree{Limits: &requestjson.Limits{Output: maxOutput + 1}}}, service.Invalid},
		"a large value":            {requestjson.SubmitRequest{Code: "1", Tree: requestjson.Tree{Limits: &requestjson.Limits{Value: maxValue + 1}}}, service.Invalid},
		"the most":                 {requestjson.SubmitRequest{Code: "1", Tree: requestjson.Tree{Limits: &requestjson.Limits{Output: maxOutput, Value: maxValue}}}, ""},
		"a large request":          {requestjson.SubmitRequest{Code: "1", Start: requestjson.Start{Stdin: strings.Repeat("a", maxRecord)}}, service.TooLarge},
		"neither code nor command": {requestjson.SubmitRequest{}, service.Invalid},
		"the largest code":         {requestjson.SubmitRequest{Code: strings.Repeat("a", 4<<20)}, ""},
	} {
		tc.in.Key = "key"
		who := &tenant.Tenant{Name: "token:" + what}
		run, err := w.Submit(t.Context(), who, &tc.in)
		if tc.want == "" && err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if tc.want != "" {
			if wantCode(t, what, err, tc.want); run != nil {
				t.Errorf("%s: %+v", what, run)
			}
			if _, err := w.Get(t.Context(), who, "key"); !errors.Is(err, errNone) {
				t.Errorf("%s was refused, and is there: %v", what, err)
			}
		}
	}
}

// A server without an engine refuses all, and one whose engine was never started finds none.
func TestNoEngine(t *testing.T) {
	w := newWorld(t)
	var started bool
	never := New(Options{Service: w.Service, Engine: func(_ context.Context, start bool) (*engine.Client, error) {
		if started = started || start; started {
			return nil, engine.ErrUnavailable
		}
		return nil, nil
	}})
	defer never.Close()
	none := New(Options{Service: w.Service})
	defer none.Close()
	for what, tc := range map[string]struct {
		runs   *Runs
		err    error
		submit error
	}{"none": {none, errNoBatch, errNoBatch}, "never started": {never, errNone, engine.ErrUnavailable}} {
		if err := tc.runs.Start(t.Context()); err != nil && what == "never started" {
			t.Errorf("%s: Start: %v", what, err)
		}
		_, getErr := tc.runs.Get(t.Context(), ada, "a")
		_, cancelErr := tc.runs.Cancel(t.Context(), ada, "a")
		followErr := tc.runs.Follow(t.Context(), ada, "a", nil)
		for _, err := range []error{getErr, cancelErr, followErr} {
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: %v, want %v", what, err, tc.err)
			}
		}
		if _, err := tc.runs.Submit(t.Context(), ada, program1("a", "a")); !errors.Is(err, tc.submit) {
			t.Errorf("%s: Submit: %v, want %v", what, err, tc.submit)
		}
	}
}

// The bytes of requests and results within the life of a result are a quota of the tenant.
func TestQuota(t *testing.T) {
	w := newWorld(t)
	few := w.newMachine(t, machineOptions{settings: func(s *settings.Settings) { s.Tenant.BatchBytes = 10_000 }})
	large := strings.Repeat("a", 6000)
	if _, err := few.Submit(t.Context(), ada, program1("a", large)); err != nil {
		t.Fatal(err)
	}
	_, err := few.Submit(t.Context(), ada, program1("b", large))
	wantCode(t, "over the quota", err, service.Exceeded)
	if e, ok := errors.AsType[*quota.Exceeded](err); !ok || e.Limit != "batchBytes" {
		t.Errorf("over the quota: %v", err)
	}
	if _, err := few.Submit(t.Context(), ada, program1("a", large)); err != nil {
		t.Errorf("submitted again: %v", err)
	}
	if _, err := few.Submit(t.Context(), &tenant.Tenant{Name: "token:bob"}, program1("b", large)); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	for range 2 {
		receive(t, "call", few.calls).exit(0) // prints its program
	}
	run := w.wait(t, "a")
	if run.Error == nil || run.Error.Code != string(service.Exceeded) || run.Error.Status != http.StatusTooManyRequests || run.Attempts != 1 {
		t.Errorf("%+v %+v", run, run.Error)
	}
}
