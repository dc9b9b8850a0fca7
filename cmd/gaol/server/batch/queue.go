package batch

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/strictjson"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Options are the options of [New].
type Options struct {
	// Engine returns the engine; nil: there is none yet. It starts one if there is none and start is true. Nil: there are no
	// batch runs.
	Engine func(ctx context.Context, start bool) (*engine.Client, error)

	// Serve serves a request of a tenant within its quotas.
	Serve func(w http.ResponseWriter, r *http.Request, t *tenant.Tenant)

	// Accepts reports whether this machine begins other runs now. Nil: always.
	Accepts func() bool

	// NameOf returns the name of a tenant that means the same on all machines, and TenantOf the tenant. Nil: the name itself.
	NameOf   func(*tenant.Tenant) string
	TenantOf func(name string) *tenant.Tenant

	// Knows reports whether a tenant can exist.
	Knows func(name string) bool

	Service *service.Service
}

// Runs are the batch runs. It implements [service.Batch].
type Runs struct {
	Options
	log      *slog.Logger
	quota    hourly
	slots    chan struct{} // one for each run at the same time
	refusals *rate.Limiter
	started  sync.Once       // by use or, to begin no more work, by Close
	ctx      context.Context // of taking messages
	stop     context.CancelFunc
	work     sync.WaitGroup
}

// New returns the batch runs of a server. The caller calls Close.
func New(o Options) *Runs {
	if o.NameOf == nil {
		o.NameOf = func(t *tenant.Tenant) string { return t.Name }
		o.TenantOf = func(name string) *tenant.Tenant { return &tenant.Tenant{Name: name} }
	}
	q := &Runs{Options: o, log: o.Service.Log(), slots: make(chan struct{}, slots), refusals: rate.NewLimiter(refusalsPerSec, refusalsPerSec)}
	q.quota.held = map[string]*quota.Reservation{}
	q.ctx, q.stop = context.WithCancel(context.Background())
	o.Service.Metrics().Add(prometheus.CollectorFunc(q.collect))
	return q
}

var (
	errNoBatch = service.Refuse(service.Forbidden, "this server has no batch runs: gaol serve has them")
	errNone    = service.Refuse(service.NotFound, "there is no such batch run: it was not submitted, or was done more than an hour ago")
	errOther   = service.Refuse(service.Invalid, "idempotencyKey: it was used for another request")
)

const (
	// maxRecord bounds a request and a result in bytes of JSON.
	maxRecord = 6 << 20

	// maxOutput and maxValue bound the outputs and the value of a run, so that its result is small enough: in JSON, a byte of
	// output can take six.
	maxOutput = 256 << 10
	maxValue  = 1 << 20
)

// use returns the engine, and begins to take messages. The error is errNone if there is none yet.
func (q *Runs) use(ctx context.Context, start bool) (*engine.Client, error) {
	if q.Engine == nil {
		return nil, errNoBatch
	}
	e, err := q.Engine(ctx, start)
	if err == nil && e == nil {
		return nil, errNone
	} else if err == nil {
		q.started.Do(func() { q.take(e) })
	}
	return e, err
}

// Start begins to make batch runs that were submitted before.
func (q *Runs) Start(ctx context.Context) error {
	if _, err := q.use(ctx, false); !errors.Is(err, errNone) {
		return err
	}
	return nil
}

// request is a message of a queue.
type request struct {
	Key       string          `json:"key"`
	Tenant    string          `json:"tenant"`
	Path      string          `json:"path"` // of the operation by HTTP
	Input     json.RawMessage `json:"input"`
	Submitted time.Time       `json:"submitted"`
}

// digest identifies the input.
func (r *request) digest() string { return hash(r.Path, string(r.Input)) }

// name names the batch run of a tenant with a key in the engine. It begins with the owner of the message.
func name(tenant, key string) string { return hash(tenant)[:16] + "." + hash(tenant, key) }

// hash returns a hash of texts with their lengths.
func hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(text)))
		h.Write([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// queueOf returns the queue of a tenant.
func queueOf(tenant string) int { return int(sha256.Sum256([]byte(tenant))[0]) % engine.Queues }

// result is the value of a result.
type result struct {
	Digest string              `json:"digest"` // of the request
	Run    resultjson.BatchRun `json:"run"`
}

// newRequest returns the message of a batch run.
func (q *Runs) newRequest(t *tenant.Tenant, in *requestjson.SubmitRequest) (*request, error) {
	if len(in.Mounts) > 0 || in.NodeModules.HostPath != "" && !strings.HasPrefix(in.NodeModules.HostPath, "snapshot:") {
		return nil, service.Refuse(service.Invalid, "mounts and nodeModules: a batch run has no folders of the server's machine")
	}
	l := &requestjson.Limits{}
	if in.Limits != nil {
		*l = *in.Limits
	}
	if l.Output > maxOutput || l.Value > maxValue {
		return nil, service.Refuse(service.Invalid, "limits: of a batch run, outputBytes is at most %d and valueBytes %d", maxOutput, maxValue)
	}
	l.Output, l.Value = cmp.Or(l.Output, maxOutput), cmp.Or(l.Value, maxValue)
	in.Limits = l
	r := &request{Key: cmp.Or(in.Key, strings.ToLower(rand.Text())), Tenant: q.NameOf(t), Submitted: time.Now().UTC()}
	var input any
	switch {
	case in.Command == "" && in.Code == "":
		return nil, service.Refuse(service.Invalid, "want code or a command")
	case in.Command == "":
		r.Path = "/v1/run"
		input = requestjson.RunRequest{Program: requestjson.Program{Code: in.Code, Name: in.Name, Format: in.Format, Start: in.Start}, Tree: in.Tree}
	case in.Code+in.Name+in.Format != "":
		return nil, service.Refuse(service.Invalid, "command: a command has no code, name and format")
	default:
		r.Path = "/v1/command"
		input = requestjson.CommandRequest{Command: requestjson.Command{Command: in.Command, Start: in.Start}, Tree: in.Tree}
	}
	var err error
	r.Input, err = json.Marshal(input)
	return r, err
}

// Submit submits a batch run, unless the tenant has one with the same key and request.
func (q *Runs) Submit(ctx context.Context, t *tenant.Tenant, in *requestjson.SubmitRequest) (*resultjson.BatchRun, error) {
	r, err := q.newRequest(t, in)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(text) > maxRecord {
		return nil, service.Refuse(service.TooLarge, "the request takes %d bytes, the limit of a batch run is %d", len(text), maxRecord)
	}
	e, err := q.use(ctx, true)
	if err != nil {
		return nil, err
	}
	for { // until nothing happens between the questions
		_, found, err := q.find(ctx, r.Tenant, r.Key)
		switch {
		case err == nil && found.Digest == r.digest():
			return &found.Run, nil
		case err == nil:
			return nil, errOther
		case !errors.Is(err, errNone):
			return nil, err
		}
		if err := q.quota.add(q.Service.Account(t), t.Name, len(text)); err != nil {
			return nil, err
		}
		err = e.Submit(ctx, queueOf(r.Tenant), name(r.Tenant, r.Key), text)
		if err == nil {
			return &resultjson.BatchRun{Key: r.Key, State: resultjson.BatchQueued, Submitted: r.Submitted}, nil
		}
		if !errors.Is(err, engine.ErrExists) {
			return nil, err
		}
	}
}

// find returns a batch run with the digest of its request, and the engine.
func (q *Runs) find(ctx context.Context, tenant, key string) (e *engine.Client, found *result, err error) {
	if e, err = q.use(ctx, false); err != nil {
		return nil, nil, err
	}
	n := name(tenant, key)
	if found, err = storedResult(ctx, e, n); !errors.Is(err, errNone) {
		return e, found, err
	}
	text, err := e.Queued(ctx, queueOf(tenant), n)
	if errors.Is(err, engine.ErrNotFound) { // a worker may just have stored its result
		found, err = storedResult(ctx, e, n)
		return e, found, err
	} else if err != nil {
		return nil, nil, err
	}
	var r request
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, nil, err
	}
	found = &result{r.digest(), resultjson.BatchRun{Key: r.Key, State: resultjson.BatchQueued, Submitted: r.Submitted}}
	answer, err := e.Ask(ctx, askSubject+n)
	if err == nil && json.Unmarshal(answer, &found.Run.Attempts) == nil {
		found.Run.State = resultjson.BatchRunning
	}
	return e, found, nil // without an answer it counts as queued
}

// storedResult returns a result, or errNone.
func storedResult(ctx context.Context, e *engine.Client, name string) (*result, error) {
	text, _, err := e.Get(ctx, engine.Results, name)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, errNone
	} else if err != nil {
		return nil, err
	}
	r := &result{}
	return r, json.Unmarshal(text, r)
}

// Get describes a batch run.
func (q *Runs) Get(ctx context.Context, t *tenant.Tenant, key string) (*resultjson.BatchRun, error) {
	_, found, err := q.find(ctx, q.NameOf(t), key)
	if err != nil {
		return nil, err
	}
	return &found.Run, nil
}

// pollEvery is how often the state of a batch run is read without a hint: hints can be lost.
const pollEvery = 3 * time.Second

// Follow implements [service.Batch].
func (q *Runs) Follow(ctx context.Context, t *tenant.Tenant, key string, changed func(*resultjson.BatchRun) error) error {
	e, err := q.use(ctx, false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hints := make(chan struct{}, 1)
	if err := e.Subscribe(ctx, "*."+name(q.NameOf(t), key), func(string, []byte) {
		select {
		case hints <- struct{}{}:
		default:
		}
	}); err != nil {
		return err
	}
	var last resultjson.BatchState
	for {
		run, err := q.Get(ctx, t, key)
		if err != nil {
			return err
		}
		if run.State != last {
			if err := changed(run); err != nil {
				return err
			}
		}
		if last = run.State; last == resultjson.BatchDone {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-hints:
		case <-time.After(pollEvery):
		}
	}
}

// Cancel ends a batch run that is not done.
func (q *Runs) Cancel(ctx context.Context, t *tenant.Tenant, key string) (*resultjson.BatchRun, error) {
	tenant := q.NameOf(t)
	e, found, err := q.find(ctx, tenant, key)
	if err != nil {
		return nil, err
	} else if found.Run.State == resultjson.BatchDone {
		return &found.Run, nil
	}
	found.end(&runtime.Result{ExitCode: notRun, Cause: runtime.CauseCanceled}, nil)
	err = q.create(ctx, e, name(tenant, key), found)
	if errors.Is(err, engine.ErrExists) {
		return q.Get(ctx, t, key)
	} else if err != nil {
		return nil, err
	}
	_ = e.Publish(cancelSubject+name(tenant, key), nil) // otherwise its worker finds the result at the end
	return &found.Run, nil
}

// end sets the result or the error of a batch run.
func (r *result) end(res *runtime.Result, failed *resultjson.BatchError) {
	now := time.Now().UTC()
	r.Run.State, r.Run.Done, r.Run.Result, r.Run.Error = resultjson.BatchDone, &now, res, failed
}

// notRun is the exit code of batch runs that no worker has completed, as that of gaol run for a program that it could not run.
const notRun = 125

// create stores a result, which has not been stored before.
func (q *Runs) create(ctx context.Context, e *engine.Client, name string, r *result) error {
	text, err := strictjson.Encode(r, "") // package json would escape <, > and &: it may be too large then
	if err != nil {
		return err
	}
	return e.Create(ctx, engine.Results, name, text, 0)
}
