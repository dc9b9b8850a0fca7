package server

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/policy"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// While the server is being stopped, new snippets are refused, and it waits for running ones.
func TestDrainWaits(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.DrainMs = 60_000 }})
	other := s.Client(t, snippetUser)
	servertest.Send(t, other, http.MethodGet, path, nil).Want(t, http.StatusOK) // keeps a connection
	es := follow(t, s, snippetUser, path, object{"source": forever, "timeoutMs": 10_000})
	es.logged("[log] started")
	closed := make(chan error, 1)
	go func() { closed <- s.Drain(context.Background()) }()
	harness.WaitFor(t, "the server is being stopped", func() bool {
		return servertest.Send(t, other, http.MethodGet, "/readyz", nil).Status == http.StatusServiceUnavailable
	})
	if p := servertest.Send(t, other, http.MethodPost, path, object{"source": "1"}).Want(t, http.StatusServiceUnavailable); p.Code != "draining" {
		t.Errorf("%+v", p)
	}
	select {
	case err := <-closed:
		t.Errorf("the server has not waited: %v", err)
	default:
	}
	es.cancel()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// After the time for that, it ends them.
func TestDrainEnds(t *testing.T) {
	servertest.SkipInFleet(t, "a node that stops ends its own snippets only")
	s := servertest.Start(t, servertest.Options{Settings: func(o *settings.Settings) { o.DrainMs = 1 }})
	es := follow(t, s, snippetUser, path, object{"source": forever, "timeoutMs": 10_000})
	es.logged("[log] started")
	closed := make(chan error, 1)
	go func() { closed <- s.Drain(context.Background()) }()
	if e := es.next(); e.name != "error" || !strings.Contains(e.data, `"code":"interrupted"`) {
		t.Errorf("%+v", e)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// New settings apply to the next snippet, and a snippet that runs meanwhile is not disturbed.
func TestReload(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	es := follow(t, s, snippetUser, path, object{"source": "console.log('started'); await new Promise((done) => setTimeout(done, 500)); export const x = 1"})
	es.logged("[log] started")
	next := *s.Settings()
	next.Permissions = parsePermissions(t, `{"childProcess":"deny","network":"allow"}`)
	s.Reload(&next, nil)
	o := run(t, s, snippetUser, object{"source": "import { execFileSync } from 'node:child_process'; export const ran = (() => { try { execFileSync('/bin/true'); return true } catch { return false } })()"})
	if o.Facts["ran"] != false {
		t.Errorf("%+v", o)
	}
	last := next
	last.Snippets.Network, last.RunTimeoutMs = "public", 700
	s.Reload(&last, nil)
	var info struct {
		Permissions []string
		TimeoutMs   map[string]float64
	}
	servertest.Send(t, s.Client(t, snippetUser), http.MethodGet, path, nil).Into(t, &info)
	if len(info.Permissions) != 3 || info.TimeoutMs["max"] != 700 || info.TimeoutMs["default"] != 700 {
		t.Errorf("%+v", info)
	}
	if o := run(t, s, snippetUser, object{"source": forever}); !o.TimedOut || o.Errors[0] != "wall-clock budget of 700ms elapsed" {
		t.Errorf("%+v", o)
	}
	if e := es.next(); e.name != "result" || !strings.Contains(e.data, `"facts":{"x":1}`) {
		t.Errorf("%+v", e)
	}
}

func parsePermissions(t *testing.T, text string) policy.Permissions {
	t.Helper()
	p, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
