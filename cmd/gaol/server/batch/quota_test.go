package batch

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// A run that exceeds a quota is not lost, and does not delay other tenants.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.submit(t, "patient")
	for range maxAttempts + 1 {
		waitFor(t, "message", func() bool {
			m, err := w.client.Take(t.Context(), queueOf(ada.Name))
			return err == nil && m != nil && m.Refuse(t.Context(), 0) == nil
		})
	}
	worker := w.newMachine(t, machineOptions{})
	var neighbour *tenant.Tenant // of the same queue
	for i := 0; neighbour == nil || queueOf(neighbour.Name) != queueOf(ada.Name); i++ {
		neighbour = tenantNamed(fmt.Sprint("token:", i))
	}
	for i := range slots { // twice as many as the queue has
		w.submit(t, fmt.Sprint(i))
	}
	if _, err := w.Submit(t.Context(), neighbour, program1("neighbour", "neighbour")); err != nil {
		t.Fatal(err)
	}
	for full, left := true, slots+1; left > 0; {
		c := receive(t, "call", worker.calls)
		switch {
		case c.tenant == neighbour.Name:
			full = false
			c.exit(0)
		case full:
			c.respond <- &service.Error{Code: service.Exceeded, Err: errors.New("full"), RetryAfter: time.Hour}
		default:
			left--
			c.exit(0)
		}
	}
	if run := w.wantExit(t, "patient", 0); run.Attempts != 1 {
		t.Errorf("%+v", run)
	}
}

// A queued run of a removed tenant ends without executing. A run of a new tenant waits until the machine knows the tenant.
func TestRemovedTenant(t *testing.T) {
	w := newWorld(t)
	var known atomic.Bool
	worker := w.newMachine(t, machineOptions{knows: func(name string) bool { return known.Load() || name != ada.Name }})
	w.submit(t, "a")
	run := w.wait(t, "a")
	if run.Error == nil || run.Error.Code != string(service.Forbidden) || run.Error.Status != http.StatusForbidden || run.Error.Detail == "" || len(worker.calls) > 0 {
		t.Errorf("%+v %+v, %d calls", run, run.Error, len(worker.calls))
	}
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "a") })
	w.submit(t, "new")
	waitFor(t, "the machine has refused it", func() bool { return worker.metric(t, "gaol_fleet_redeliveries_total") > strangerAttempts })
	known.Store(true)
	worker.next(t, "new").exit(0)
	w.wantExit(t, "new", 0)
}
