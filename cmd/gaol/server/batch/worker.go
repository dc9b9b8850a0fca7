package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	goruntime "runtime"
	"strconv"
	"time"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Subjects of hints and questions about a batch run, before its name.
const (
	askSubject    = "ask.run." // how often it has begun; its worker answers
	begunSubject  = "begun."
	cancelSubject = "cancel."
)

const (
	maxAttempts = 20               // 5 would lose runs of an engine that is down for a minute
	renewEvery  = 3 * time.Second  // less than a third of the lease
	tryAgain    = time.Second      // what has failed
	maxRefusal  = 10 * time.Second // of a run that exceeds a quota: it may be canceled meanwhile

	// strangerAttempts are the attempts of the run of an unknown tenant: this machine may learn of a new one later than others.
	strangerAttempts = 5

	// refusalsPerSec bounds how often a machine gets runs again that exceed a quota. The engine delivers them before others.
	refusalsPerSec = 50
)

// slots is how many runs a machine makes at the same time, and half as many from one queue.
var slots = 4 * goruntime.GOMAXPROCS(0)

// take takes messages of all queues, and makes their runs, until Close.
func (q *Runs) take(e *engine.Client) {
	for queue := range engine.Queues {
		q.work.Go(func() {
			held := make(chan struct{}, slots/2)
			for q.ctx.Err() == nil {
				held <- struct{}{}
				var m *engine.Message
				var err error
				if q.Accepts == nil || q.Accepts() {
					m, err = e.Take(q.ctx, queue)
				} else {
					engine.Sleep(q.ctx, tryAgain)
				}
				if m == nil {
					<-held
					if err != nil {
						q.log.Debug("take a batch run", "err", err)
						engine.Sleep(q.ctx, tryAgain)
					}
					continue
				}
				q.work.Go(func() {
					defer func() { <-held }()
					q.serve(e, queue, m)
				})
			}
		})
	}
}

// serve makes a run, or returns its message to the queue. It keeps the lease of the message meanwhile.
func (q *Runs) serve(e *engine.Client, queue int, m *engine.Message) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(q.ctx))
	defer cancel()
	q.work.Go(func() {
		for ; ctx.Err() == nil; engine.Sleep(ctx, renewEvery) {
			_ = m.Renew() // without an engine, the lease may end
		}
	})
	var r request
	if err := json.Unmarshal(m.Data, &r); err != nil {
		q.log.Error("a batch run cannot be read", "queue", queue, "err", err)
		_ = m.Done(ctx) // otherwise it is delivered again
		return
	}
	if m.Attempts > 1 {
		q.Service.Metrics().Redelivered()
	}
	n := name(r.Tenant, r.Key)
	done := &result{r.digest(), resultjson.BatchRun{Key: r.Key, Submitted: r.Submitted, Attempts: m.Attempts}}
	_, err := storedResult(ctx, e, n)
	switch {
	case err == nil: // it was canceled, or its worker was lost before it has deleted the message
		_ = m.Done(ctx)
		return
	case !errors.Is(err, errNone), !q.Knows(r.Tenant) && m.Attempts <= strangerAttempts:
		_ = m.Return(tryAgain)
		return
	case m.Attempts > maxAttempts:
		q.Service.Metrics().Lost()
		done.end(&runtime.Result{ExitCode: notRun, Cause: runtime.CauseLost}, nil)
	case !q.Knows(r.Tenant):
		done.end(nil, &resultjson.BatchError{Code: string(service.Forbidden), Status: http.StatusForbidden, Detail: "the tenant does not exist any more"})
	case !q.attempt(ctx, e, n, m, &r, done):
		return
	}
	if q.store(ctx, e, &r, done) {
		_ = m.Done(ctx) // otherwise the next worker finds the result
	}
}

// attempt makes a run, and sets its result. It returns false if it has returned the message to the queue instead.
func (q *Runs) attempt(ctx context.Context, e *engine.Client, name string, m *engine.Message, r *request, done *result) bool {
	attempts, err := json.Marshal(m.Attempts)
	if err == nil {
		err = e.Answer(ctx, askSubject+name, func() []byte { return attempts })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err == nil {
		err = e.Subscribe(ctx, cancelSubject+name, func(string, []byte) { cancel() })
	}
	if err != nil {
		_ = m.Return(tryAgain)
		return false
	}
	select {
	case q.slots <- struct{}{}:
	case <-ctx.Done(): // it was canceled: there is a result
		return true
	case <-q.ctx.Done():
		_ = m.Return(0)
		return false
	}
	_ = e.Publish(begunSubject+name, nil)
	status, p := q.make(ctx, r, &done.Run)
	<-q.slots
	switch wait := time.Duration(p.RetryAfterMs) * time.Millisecond; {
	case status == http.StatusOK, ctx.Err() != nil:
		done.end(done.Run.Result, nil)
	case status == http.StatusTooManyRequests && wait > 0: // by a quota
		_ = m.Refuse(ctx, min(max(wait, tryAgain), maxRefusal)+q.refusals.Reserve().Delay())
		return false
	case status >= http.StatusInternalServerError: // another machine may succeed
		_ = m.Return(max(wait, time.Duration(m.Attempts)*tryAgain)) // 20 attempts take minutes
		return false
	default:
		done.end(nil, &resultjson.BatchError{Code: string(p.Code), Status: status, Detail: p.Error()})
	}
	return true
}

// make makes a run, and sets its result. It returns the status, and the problem of another one than 200.
func (q *Runs) make(ctx context.Context, r *request, run *resultjson.BatchRun) (status int, p api.Problem) {
	in, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Path, bytes.NewReader(r.Input))
	if err != nil {
		return http.StatusUnprocessableEntity, *api.NewProblem(http.StatusUnprocessableEntity, err.Error())
	}
	t := q.TenantOf(r.Tenant)
	status = http.StatusInternalServerError // after a panic
	defer q.Service.Recover(ctx, "batch run", t, &err)
	in.Header.Set("Content-Type", "application/json")
	w := &api.Recorder{Most: maxRecord}
	q.Serve(w, in, t)
	switch {
	case w.Over:
		return http.StatusRequestEntityTooLarge, *api.NewProblem(http.StatusRequestEntityTooLarge, "the result takes more than "+strconv.Itoa(maxRecord)+" bytes, the limit of a batch run")
	case w.Status != http.StatusOK:
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			p = *api.NewProblem(http.StatusBadGateway, "no result: "+err.Error())
		}
		return cmp.Or(w.Status, http.StatusBadGateway), p
	}
	if err := json.Unmarshal(w.Body.Bytes(), &run.Result); err != nil {
		return http.StatusBadGateway, *api.NewProblem(http.StatusBadGateway, "an invalid result: "+err.Error())
	}
	return http.StatusOK, p
}

// store stores a result. While the engine is away it waits. It returns false if that failed until Close.
func (q *Runs) store(ctx context.Context, e *engine.Client, r *request, done *result) bool {
	text, err := json.Marshal(done)
	if err == nil {
		t := q.TenantOf(r.Tenant)
		err = q.quota.add(q.Service.Account(t), t.Name, len(text))
	}
	if err != nil {
		done.Run.Result, done.Run.Error = nil, &resultjson.BatchError{Code: string(service.Exceeded), Status: http.StatusTooManyRequests, Detail: "the result is not kept: " + err.Error()}
	}
	for {
		switch err := q.create(ctx, e, name(r.Tenant, r.Key), done); {
		case err == nil:
			return true
		case errors.Is(err, engine.ErrExists):
			q.Service.Metrics().Discarded()
			return true
		case q.ctx.Err() != nil:
			q.log.Error("the result of a batch run is lost: another machine makes the run again", "err", err)
			return false
		}
		engine.Sleep(q.ctx, tryAgain)
	}
}

// Stop stops taking messages. The runs continue until the service ends them.
func (q *Runs) Stop() { q.stop() }

// Close stops, and waits for the runs.
func (q *Runs) Close() {
	q.stop()
	q.started.Do(func() {})
	q.work.Wait()
}
