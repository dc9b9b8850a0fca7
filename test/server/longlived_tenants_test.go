package server

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime/resultjson"
	"gaol/test/harness"
	"gaol/test/server/servertest"
	"gaol/test/tier"
)

// runsOf counts the runs of a tenant that have a cgroup.
func runsOf(user servertest.User) int {
	seen := map[string]bool{}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"} {
		group := fmt.Sprintf("%s%s/tenants/uid-%d", root, harness.Parent, user.UID)
		for _, dir := range harness.Glob(group+"/j*/r*", group+"[^0-9]*/j*/r*") { // also of users of other nodes
			seen[filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir)] = true
		}
	}
	return len(seen)
}

// A tenant finds no process or context of another one, not even with its ID.
func TestOtherTenant(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	a, b := newClient(t, s, ada), newClient(t, s, ben)
	sandbox, own := a.sandbox(t, nil), b.sandbox(t, nil)
	process := a.spawn(t, sandbox, object{"command": "sleep", "args": []string{"1000"}})
	ctx := a.context(t, sandbox, object{})
	for _, path := range []string{process, own + strings.TrimPrefix(process, sandbox), sandbox + "/processes/p-nope"} {
		for request, body := range map[string]any{
			"GET ": nil, "DELETE ": nil, "GET /wait": nil, "GET /events": nil, "POST /stdin": object{"text": "x"},
			"POST /signal": object{"signal": "SIGKILL"}, "POST /resize": object{"rows": 1, "cols": 1},
		} {
			method, suffix, _ := strings.Cut(request, " ")
			b.send(t, method, path+suffix, body, http.StatusNotFound, nil)
		}
	}
	for _, path := range []string{ctx, own + strings.TrimPrefix(ctx, sandbox)} {
		for request, body := range map[string]any{
			"GET ": nil, "DELETE ": nil, "POST /interrupt": nil, "POST /cells": object{"code": "1"}, "POST /complete": object{"line": "a"},
		} {
			method, suffix, _ := strings.Cut(request, " ")
			b.send(t, method, path+suffix, body, http.StatusNotFound, nil)
		}
	}
	for _, request := range []string{"GET /processes", "GET /contexts"} {
		method, suffix, _ := strings.Cut(request, " ")
		b.send(t, method, sandbox+suffix, nil, http.StatusNotFound, nil)
	}
	var list struct{ Processes, Contexts []any }
	b.send(t, "GET", own+"/processes", nil, http.StatusOK, &list)
	b.send(t, "GET", own+"/contexts", nil, http.StatusOK, &list)
	if len(list.Processes)+len(list.Contexts) != 0 {
		t.Errorf("%+v", list)
	}
	if n := a.active(t, sandbox); n != 2 {
		t.Errorf("%d are left", n)
	}
}

// Processes and contexts count as runs for as long as they live, also after their client has gone.
func TestQuotaOfRuns(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(set *settings.Settings) { set.Tenant = quota.Limits{Runs: 3}.Or(set.Tenant) }})
	c, other := newClient(t, s, ada), newClient(t, s, ben)
	sandbox := c.sandbox(t, nil)
	process := c.spawn(t, sandbox, object{"command": "cat"})
	ctx := c.context(t, sandbox, object{})
	e := c.follow(t, "POST", sandbox+"/run", object{"code": "console.log('up'); setInterval(() => {}, 1e6)"}, "")
	e.next(t)
	refused := func(path string, body object) {
		t.Helper()
		if p := c.send(t, "POST", path, body, http.StatusTooManyRequests, nil); p.Code != "quota" || !strings.Contains(p.Detail, "runs") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	refused(sandbox+"/processes", object{"command": "cat"})
	refused(sandbox+"/contexts", object{})
	refused(sandbox+"/run", object{"code": "1"})
	refused("/v1/run", object{"code": "1"})
	if r := c.request(t, "POST", sandbox+"/run", object{"code": "1"}, ""); r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s", r.Status)
	}
	other.send(t, "POST", "/v1/run", object{"code": "1"}, http.StatusOK, nil)
	c.evaluate(t, ctx, "1") // which is no further run
	e.vanish()
	harness.WaitFor(t, "the run has ended", func() bool {
		return c.request(t, "POST", sandbox+"/run", object{"code": "1"}, "").StatusCode == http.StatusOK
	})
	c.write(t, process, object{"close": true})
	c.wait(t, process)
	c.send(t, "DELETE", ctx, nil, http.StatusNoContent, nil)
	for range 3 {
		c.spawn(t, sandbox, object{"command": "cat"})
	}
	refused(sandbox+"/processes", object{"command": "cat"})
	c.send(t, "DELETE", sandbox, nil, http.StatusNoContent, nil)
	sandbox = c.sandbox(t, nil)
	for range 3 {
		c.spawn(t, sandbox, object{"command": "cat"})
	}
}

// A sandbox has room for runs beside its processes and contexts. Ended ones do not count, and those
// that are kept are bounded.
func TestManyProcesses(t *testing.T) {
	tier.Soak(t)
	c := newClient(t, servertest.Start(t, servertest.Options{Settings: func(set *settings.Settings) {
		more := quota.Limits{Memory: 1 << 40, CPUs: 1000} // than this machine may have
		set.Tenant, set.Server = more.Or(set.Tenant), more.Or(set.Server)
	}}), ada)
	sandbox := c.sandbox(t, nil)
	const most = 48
	for i := range most {
		if i%16 == 0 {
			c.context(t, sandbox, object{})
		} else {
			c.spawn(t, sandbox, object{"command": "cat"})
		}
	}
	p := c.send(t, "POST", sandbox+"/processes", object{"command": "cat"}, http.StatusTooManyRequests, nil)
	if !strings.Contains(p.Detail, "48") {
		t.Errorf("%+v", p)
	}
	var list struct{ Processes []resultjson.ProcessInfo }
	c.send(t, "GET", sandbox+"/processes", nil, http.StatusOK, &list)
	for _, info := range list.Processes {
		c.send(t, "POST", sandbox+"/processes/"+info.ID+"/signal", object{"signal": "SIGKILL"}, http.StatusNoContent, nil)
	}
	for _, info := range list.Processes {
		c.wait(t, sandbox+"/processes/"+info.ID)
	}
	// Results of 10 MiB each: the tenant's 32 MiB have room for three.
	var all []string
	for range 4 {
		all = append(all, c.spawn(t, sandbox, object{"code": "__return('x'.repeat(10 << 20))"}))
		c.wait(t, all[len(all)-1])
	}
	c.send(t, "GET", all[0], nil, http.StatusNotFound, nil)
	c.send(t, "GET", all[3], nil, http.StatusOK, nil)
}
