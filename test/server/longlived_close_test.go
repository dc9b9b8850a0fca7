package server

import (
	"context"
	"strings"
	"testing"

	"gaol/test/server/servertest"
)

// A server that is closed ends processes, contexts and runs, and reports it to their clients.
func TestClose(t *testing.T) {
	servertest.SkipInFleet(t, "a node that stops ends its own sandboxes only")
	s := servertest.Start(t, servertest.Options{})
	c := newClient(t, s, ada)
	sandbox := c.sandbox(t, nil)
	idle := c.spawn(t, sandbox, object{"command": "cat"})
	c.context(t, sandbox, object{})
	p := c.spawn(t, sandbox, object{"command": "sh", "args": []string{"-c", "trap '' TERM; echo up; while :; do echo y; done"}, "whenFull": "wait"})
	process := c.follow(t, "GET", p+"/events", nil, "")
	quiet := c.follow(t, "GET", idle+"/events", nil, "")
	run := c.follow(t, "POST", sandbox+"/exec", object{"code": "console.log('up'); setInterval(() => {}, 1e6)"}, "")
	cell := c.busy(t, c.context(t, sandbox, object{}), "for (;;);")
	process.until(t, "y\n")
	run.until(t, "up\n")
	closed := make(chan error, 1)
	go func() { closed <- s.Drain(context.Background()) }()
	for name, e := range map[string]*events{"quiet process": quiet, "process": process} {
		all := e.rest(t)
		if last := all[len(all)-1]; last.name != "result" || !strings.Contains(last.data, `"cause":"canceled"`) {
			t.Errorf("%s: %+v", name, last)
		}
	}
	for name, e := range map[string]*events{"run": run, "cell": cell} {
		all := e.rest(t)
		if last := all[len(all)-1]; last.name != "error" || !strings.Contains(last.data, `"code":"closed"`) && !strings.Contains(last.data, `"code":"interrupted"`) {
			t.Errorf("%s: %+v", name, last)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := runsOf(ada); n != 0 {
		t.Errorf("%d runs are left", n)
	}
}
