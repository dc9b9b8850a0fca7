package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// A worker that is lost is replaced by another one. If it comes back, its result is discarded.
func TestWorkerLost(t *testing.T) {
	w := newWorld(t)
	w.shortLease(t)
	lost := w.newMachine(t, machineOptions{})
	w.submit(t, "a")
	late := lost.next(t, "a")
	other := w.newMachine(t, machineOptions{})
	lost.cut(t, true)
	c := other.next(t, "a")
	if run, err := w.Get(t.Context(), ada, "a"); err != nil || run.State != resultjson.BatchRunning || run.Attempts != 2 {
		t.Errorf("%+v %v", run, err)
	}
	late.exit(1) // while its machine cannot reach the engine
	c.exit(2)
	if run := w.wantExit(t, "a", 2); run.Attempts != 2 {
		t.Errorf("%+v", run)
	}
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "a") })
	lost.cut(t, false)
	waitFor(t, "the late result is discarded", func() bool { return lost.metric(t, "gaol_fleet_results_discarded_total") == 1 })
	w.wantExit(t, "a", 2)
	if n := other.metric(t, "gaol_fleet_redeliveries_total"); n != 1 {
		t.Errorf("%d redeliveries", n)
	}
	if n := other.metric(t, "gaol_fleet_results_discarded_total"); n != 0 {
		t.Errorf("%d results of the other machine were discarded", n)
	}
	w.submit(t, "b") // the worker that was lost works again
	for range 2 {
		select {
		case c := <-lost.calls:
			c.exit(0)
		case c := <-other.calls:
			c.exit(0)
		case <-time.After(timeout):
			t.Fatal("nobody makes b")
		}
		w.wantExit(t, "b", 0)
		w.submit(t, "c")
	}
}

// A healthy worker keeps its message for longer than the lease.
func TestRenew(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes twice as long as a lease")
	}
	w := newWorld(t)
	w.shortLease(t)
	worker := w.newMachine(t, machineOptions{})
	other := w.newMachine(t, machineOptions{})
	w.submit(t, "a")
	var c call
	select {
	case c = <-worker.calls:
	case c = <-other.calls:
	}
	select {
	case <-time.After(2 * (renewEvery + time.Second)):
	case <-worker.calls:
		t.Error("it is made again")
	case <-other.calls:
		t.Error("it is made again")
	}
	c.exit(0)
	if run := w.wantExit(t, "a", 0); run.Attempts != 1 {
		t.Errorf("%+v", run)
	}
}

// Statuses decide whether a run is tried again in place, is returned to the queue, or is done.
func TestStatuses(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	soon := &service.Error{Code: service.Exceeded, Err: errors.New("later"), RetryAfter: time.Millisecond}
	rows := map[string]*struct {
		responses []any
		attempts  int
		want      service.Code // empty: exit code 3
	}{
		"quota":             {[]any{soon, soon, 3}, 1, ""},
		"quota for ever":    {[]any{service.Refuse(service.Exceeded, "too large")}, 1, service.Exceeded},
		"invalid":           {[]any{service.Refuse(service.Invalid, "code")}, 1, service.Invalid},
		"missing snapshot":  {[]any{service.Refuse(service.NotFound, "snapshot")}, 1, service.NotFound},
		"internal":          {[]any{errors.New("internal"), 3}, 2, ""},
		"draining":          {[]any{service.Refuse(service.Draining, "stop"), 3}, 2, ""},
		"lost node":         {[]any{service.Refuse(service.NodeLost, "lost"), 3}, 2, ""},
		"no JSON":           {[]any{"no result", 3}, 2, ""},
		"cut JSON":          {[]any{`{"exitCode": 0, `, 3}, 2, ""},
		"nothing":           {[]any{"", service.Refuse(service.Unreachable, "gone"), 3}, 3, ""},
		"quota, then fails": {[]any{soon, service.Refuse(service.NoSpace, "full"), soon, 3}, 2, ""},
	}
	var left int
	for what, row := range rows {
		w.submit(t, what)
		left += len(row.responses)
	}
	for range left {
		c := receive(t, "call", worker.calls)
		row := rows[c.code]
		if len(row.responses) == 0 {
			t.Fatalf("%s is made again", c.code)
		}
		response := row.responses[0]
		row.responses = row.responses[1:]
		if exit, ok := response.(int); ok {
			response = &runtime.Result{ExitCode: exit}
		}
		c.respond <- response
	}
	for what, row := range rows {
		run := w.wait(t, what)
		if run.Attempts != row.attempts {
			t.Errorf("%s: attempts %d, want %d", what, run.Attempts, row.attempts)
		}
		switch {
		case row.want == "" && (run.Error != nil || run.Result.ExitCode != 3):
			t.Errorf("%s: %+v %+v", what, run.Error, run.Result)
		case row.want != "" && (run.Error == nil || run.Error.Code != string(row.want) || run.Error.Detail == "" || run.Error.Status != service.Refuse(row.want, "").Status()):
			t.Errorf("%s: %+v, want %s", what, run.Error, row.want)
		}
	}
}

// After Close, no work is added: Wait has returned, or is about to.
func TestUseAfterClose(t *testing.T) {
	w := newWorld(t)
	for _, q := range []*machine{w.newMachine(t, machineOptions{}), w.machine} { // the latter was not used
		q.Close()
		wantCode(t, "Follow", q.Follow(t.Context(), ada, "none", nil), service.NotFound)
		q.started.Do(func() { t.Error("it can begin to take messages") })
	}
}

// A run that was delivered too often is lost.
func TestMaxAttempts(t *testing.T) {
	w := newWorld(t)
	w.submit(t, "a")
	for range maxAttempts {
		waitFor(t, "message", func() bool {
			m, err := w.client.Take(t.Context(), queueOf(ada.Name))
			return err == nil && m != nil && m.Return(0) == nil
		})
	}
	worker := w.newMachine(t, machineOptions{})
	run := w.wait(t, "a")
	if run.Result == nil || run.Result.Cause != runtime.CauseLost || run.Result.ExitCode != notRun || len(worker.calls) > 0 {
		t.Errorf("%+v", run)
	}
	if n := worker.metric(t, "gaol_fleet_lost_total"); n != 1 {
		t.Errorf("%d lost", n)
	}
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "a") })
}

// Cancel ends batch runs that are queued, running or waiting, and does not change finished ones.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	cancel := func(key string, cause runtime.Cause) {
		t.Helper()
		run, err := w.Cancel(t.Context(), ada, key)
		if err != nil || run.State != resultjson.BatchDone || run.Result == nil || run.Result.Cause != cause || run.Done == nil {
			t.Fatalf("Cancel %s: %+v, %v", key, run, err)
		}
		if again := w.submit(t, key); again.Result == nil || again.Result.Cause != cause {
			t.Errorf("%s, submitted again: %+v", key, again)
		}
		w.wait(t, key)
	}
	w.submit(t, "queued")
	cancel("queued", runtime.CauseCanceled)
	worker := w.newMachine(t, machineOptions{})
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "queued") })

	w.submit(t, "running")
	c := worker.next(t, "running")
	cancel("running", runtime.CauseCanceled)
	receive(t, "end of the run", c.Done())
	waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "running") })

	w.submit(t, "waiting")
	worker.next(t, "waiting").respond <- &service.Error{Code: service.Exceeded, Err: errors.New("later"), RetryAfter: time.Hour}
	cancel("waiting", runtime.CauseCanceled)
	waitFor(t, "the message of a run that waits is deleted", func() bool { return !w.isQueued(t, "waiting") })

	w.submit(t, "done")
	worker.next(t, "done").exit(0)
	w.wantExit(t, "done", 0)
	cancel("done", runtime.CauseNone)
	if len(worker.calls) > 0 {
		t.Errorf("%d runs more", len(worker.calls))
	}
}

// Results up to a size are stored, whatever their characters. Others become errors.
func TestLargeResults(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	value, err := json.Marshal(strings.Repeat("a", maxValue-2))
	if err != nil {
		t.Fatal(err)
	}
	for what, tc := range map[string]struct {
		result runtime.Result
		stored bool
	}{
		"control characters": {runtime.Result{Value: json.RawMessage(strings.ReplaceAll(string(value), "a", "<")),
			Stdout: slices.Repeat([]byte{1}, maxOutput), Stderr: slices.Repeat([]byte{2}, maxOutput)}, true},
		"bytes":     {runtime.Result{Value: value, Stdout: slices.Repeat([]byte{0xff}, maxOutput), Stderr: slices.Repeat([]byte{0xfe, '<'}, maxOutput/2)}, true},
		"too large": {runtime.Result{Stdout: slices.Repeat([]byte{'a'}, maxRecord)}, false},
	} {
		t.Run(what, func(t *testing.T) {
			w.submit(t, what)
			text, err := encode(tc.result)
			if err != nil {
				t.Fatal(err)
			}
			worker.next(t, what).respond <- string(text)
			run := w.wait(t, what)
			switch {
			case tc.stored && (run.Error != nil || string(run.Result.Stdout) != string(tc.result.Stdout) || string(run.Result.Stderr) != string(tc.result.Stderr) || string(run.Result.Value) != string(tc.result.Value)):
				t.Errorf("%+v", run.Error)
			case !tc.stored && (run.Error == nil || run.Error.Status != http.StatusRequestEntityTooLarge):
				t.Errorf("%+v", run.Error)
			}
		})
	}
}

// Without an engine, submissions fail and results wait.
func TestEngineAway(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	w.submit(t, "a")
	c := worker.next(t, "a")
	for _, m := range []*machine{w.machine, worker} {
		m.cut(t, true)
	}
	_, err := w.Submit(t.Context(), ada, program1("b", "b"))
	wantCode(t, "Submit", err, service.EngineUnavailable)
	_, err = w.Get(t.Context(), ada, "a")
	wantCode(t, "Get", err, service.EngineUnavailable)
	_, err = w.Cancel(t.Context(), ada, "a")
	wantCode(t, "Cancel", err, service.EngineUnavailable)
	wantCode(t, "Follow", w.Follow(t.Context(), ada, "a", nil), service.EngineUnavailable)
	c.exit(4)
	waitFor(t, "the run ends", func() bool { return c.Err() != nil })
	for _, m := range []*machine{w.machine, worker} {
		m.cut(t, false)
	}
	if run := w.wantExit(t, "a", 4); run.Attempts != 1 {
		t.Errorf("%+v", run)
	}
	w.submit(t, "b")
	worker.next(t, "b").exit(0)
	w.wantExit(t, "b", 0)
}

// Close returns the messages of runs that the service has ended, or that wait, to the queue.
func TestClose(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	keys := []string{"interrupted", "waiting", "done"}
	for _, key := range keys {
		w.submit(t, key)
	}
	var ended sync.WaitGroup
	calls := map[string]call{}
	for range keys {
		c := receive(t, "call", worker.calls)
		calls[c.code] = c
	}
	calls["waiting"].respond <- &service.Error{Code: service.Exceeded, Err: errors.New("later"), RetryAfter: time.Hour}
	receive(t, "the end of the call", calls["waiting"].Done())
	worker.Stop()
	w.submit(t, "later")
	ended.Go(worker.Close)
	calls["interrupted"].respond <- service.Refuse(service.Stopped, "stopped")
	calls["done"].exit(5)
	ended.Wait()
	if len(worker.calls) > 0 {
		t.Errorf("it has made %d runs more", len(worker.calls))
	}
	if run := w.wantExit(t, "done", 5); run.Attempts != 1 {
		t.Errorf("%+v", run)
	}
	other := w.newMachine(t, machineOptions{})
	for range 3 {
		receive(t, "call", other.calls).exit(6)
	}
	for _, key := range []string{"interrupted", "waiting", "later"} {
		w.wantExit(t, key, 6)
	}
}

// A message that cannot be read is deleted, so that it delays no others.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	for _, text := range []string{"", "{", "[]", `{"key": 1}`, `{"input"`} {
		if err := w.client.Submit(t.Context(), queueOf(ada.Name), name(ada.Name, "a"), []byte(text)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		waitFor(t, "the message is deleted", func() bool { return !w.isQueued(t, "a") })
	}
	if len(worker.calls) > 0 {
		t.Error("it was made")
	}
}

// Follow reports each state once, and ends with the last one, an error of the receiver, or the context.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	w.submit(t, "a")
	follow := func(ctx context.Context, changed func(resultjson.BatchState) error) (<-chan resultjson.BatchState, <-chan error) {
		states, ended := make(chan resultjson.BatchState, 100), make(chan error, 1)
		go func() {
			ended <- w.Follow(ctx, ada, "a", func(run *resultjson.BatchRun) error {
				states <- run.State
				return changed(run.State)
			})
			close(states)
		}()
		return states, ended
	}
	all := func(resultjson.BatchState) error { return nil }
	states, ended := follow(t.Context(), all)
	ctx, cancel := context.WithCancel(t.Context())
	canceledStates, canceled := follow(ctx, all)
	failed := errors.New("the client has gone")
	goneStates, gone := follow(t.Context(), func(s resultjson.BatchState) error {
		if s == resultjson.BatchRunning {
			return failed
		}
		return nil
	})
	for _, states := range []<-chan resultjson.BatchState{states, canceledStates, goneStates} {
		if s := receive(t, "state", states); s != resultjson.BatchQueued {
			t.Errorf("the first state is %s", s)
		}
	}
	cancel()
	if err := receive(t, "end", canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	worker := w.newMachine(t, machineOptions{})
	c := worker.next(t, "a")
	if err := receive(t, "end", gone); !errors.Is(err, failed) {
		t.Errorf("the receiver has failed: %v", err)
	}
	if s := receive(t, "state", states); s != resultjson.BatchRunning {
		t.Errorf("the second state is %s", s)
	}
	begin := time.Now()
	c.exit(0)
	if s := receive(t, "state", states); s != resultjson.BatchDone {
		t.Errorf("the third state is %s", s)
	}
	if err := receive(t, "end", ended); err != nil {
		t.Error(err)
	}
	t.Logf("done %v after the run", time.Since(begin))
	if s, more := <-states; more {
		t.Errorf("a fourth state %s", s)
	}
}

// A lost hint only delays Follow.
func TestLostHint(t *testing.T) {
	w := newWorld(t)
	w.submit(t, "a")
	follower := w.newMachine(t, machineOptions{idle: true})
	states, ended := make(chan resultjson.BatchState, 10), make(chan error, 1)
	go func() {
		ended <- follower.Follow(t.Context(), ada, "a", func(run *resultjson.BatchRun) error {
			states <- run.State
			return nil
		})
	}()
	receive(t, "state", states)
	follower.cut(t, true) // it polls only after some seconds
	if _, err := w.Cancel(t.Context(), ada, "a"); err != nil {
		t.Fatal(err)
	}
	follower.cut(t, false)
	if s := receive(t, "state", states); s != resultjson.BatchDone {
		t.Errorf("state %s", s)
	}
	if err := receive(t, "end", ended); err != nil {
		t.Error(err)
	}
}

// A flood of a queue takes a part of a machine's slots only.
func TestSlots(t *testing.T) {
	w := newWorld(t)
	worker := w.newMachine(t, machineOptions{})
	for i := range 3 * slots {
		w.submit(t, fmt.Sprint(i))
	}
	var active []call
	for range slots / 2 {
		active = append(active, receive(t, "call", worker.calls))
	}
	other := ada
	for i := 0; queueOf(other.Name) == queueOf(ada.Name); i++ {
		other = tenantNamed(fmt.Sprint("token:", i))
	}
	if _, err := w.Submit(t.Context(), other, program1("quiet", "quiet")); err != nil {
		t.Fatal(err)
	}
	worker.next(t, "quiet").exit(0) // beside the flood
	for done := 0; len(active) > 0; done++ {
		if len(worker.calls) > 0 {
			t.Fatalf("more than %d runs of one queue", slots/2)
		}
		active[0].exit(0)
		active = active[1:]
		if done < 3*slots-slots/2 {
			active = append(active, receive(t, "call", worker.calls))
		}
	}
}

// While the engine is refused to it, a machine whose Engine fails later works.
func TestEngineLater(t *testing.T) {
	w := newWorld(t)
	fail := true
	later := New(Options{Service: w.Service, Engine: func(context.Context, bool) (*engine.Client, error) {
		if fail {
			return nil, engine.ErrUnavailable
		}
		return w.client, nil
	}})
	defer later.Close()
	if err := later.Start(t.Context()); err == nil {
		t.Error("it has started without an engine")
	}
	_, err := later.Submit(t.Context(), ada, program1("a", "a"))
	wantCode(t, "Submit", err, service.EngineUnavailable)
	fail = false
	later.Stop() // the test takes the message
	if _, err := later.Submit(t.Context(), ada, program1("a", "a")); err != nil {
		t.Error(err)
	}
}
