package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/internal/strictjson"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// task is a request without a result so far.
type task struct {
	*connection
	id     uint32
	ctx    context.Context
	cancel context.CancelCauseFunc
	stdin  *protocol.Buffer
	credit [protocol.Streams]*protocol.Credit // of the streams to the client

	received, sent atomic.Int64 // bytes of the streams, without events
	signals        chan syscall.Signal

	route route
}

// errCanceled is the cause of a task that the client has canceled.
var errCanceled = fmt.Errorf("the client has canceled the request: %w", context.Canceled)

func newTask(c *connection, id uint32) *task {
	t := &task{connection: c, id: id, signals: make(chan syscall.Signal, maxSignals)}
	t.ctx, t.cancel = context.WithCancelCause(c.ctx)
	t.stdin = protocol.NewBuffer()
	t.stdin.Hold = c.hold
	t.stdin.Return = func(n uint32) {
		_ = c.send(t.ctx, protocol.AppendCredit(nil, id, protocol.Stdin, n)) // fails if the session has ended
	}
	for s := range t.credit {
		t.credit[s] = protocol.NewCredit()
	}
	return t
}

// run executes the request and sends its result.
func (t *task) run(f protocol.Frame) {
	result, err := t.execute(f)
	if refused, ok := service.AsError(context.Cause(t.ctx)); ok { // its input exceeds a quota
		err = refused
	}
	t.cancel(nil)
	t.stdin.Discard()
	frame, isRelayed := result.(relayed)
	if err == nil && !isRelayed {
		frame, err = resultFrame(t.id, result)
	}
	if err != nil {
		text, failed := json.Marshal(api.ProblemOf(err))
		if failed != nil {
			panic(failed) // it has strings and numbers only
		}
		frame = protocol.Append(nil, protocol.KindError, t.id, text)
	}
	t.end(t, len(f.Body))
	_ = t.send(t.connection.ctx, frame) // fails if the session has ended
}

// execute performs the request.
func (t *task) execute(f protocol.Frame) (_ any, err error) {
	defer t.service.Recover(t.ctx, "session", t.tenant, &err)
	if f.Refused != nil {
		return nil, f.Refused
	}
	account := t.service.Account(t.tenant)
	if !t.tenant.Forwarded { // otherwise another node has counted it
		if err := account.Request(); err != nil {
			return nil, err
		}
	}
	values, err := strictjson.Count(f.Body)
	if err != nil {
		return nil, service.Refuse(service.Invalid, "the request: %w", err)
	}
	held, err := account.Reserve(quota.Limits{Concurrent: 1, Bodies: int64(values) * quota.ValueBytes}) // the frame has reserved its text
	if err != nil {
		return nil, err
	}
	defer held.Release()
	var r protocol.Request
	if err := strictjson.Decode(f.Body, &r); err != nil {
		return nil, service.Refuse(service.Invalid, "the request: %w", err)
	}
	o := operation.ByName(r.Method)
	if o == nil {
		return nil, service.Refuse(service.NotFound, "no method %q", r.Method)
	}
	if t.router != nil {
		node, leave, err := t.router.Target(t.ctx, t.tenant, o, r.Params)
		if err != nil {
			return nil, err
		}
		defer leave()
		if node != "" {
			return t.relayTo(node, f.Body)
		} else if err := t.settle(nil); err != nil {
			return nil, err
		}
	}
	ctx, record := audit.Begin(t.ctx, "session "+r.Method)
	t.ctx = ctx
	result, err := t.perform(o, r)
	audit.Of(ctx).Update(func(e *audit.Entry) { e.BytesIn, e.BytesOut = t.received.Load(), t.sent.Load() })
	status := http.StatusOK
	if err != nil {
		status = api.ProblemOf(err).Status
	}
	record(status)
	if err == nil && t.router != nil && !t.tenant.Forwarded && t.router.IsMerged(o) {
		text, err := json.Marshal(result)
		if err != nil {
			return nil, err
		}
		return t.router.Merge(t.ctx, t.tenant, o.Path, text)
	}
	return result, err
}

func resultFrame(id uint32, result any) ([]byte, error) {
	body, err := strictjson.Encode(result, "")
	if err != nil {
		return nil, err
	}
	if len(body) > protocol.MaxFrame {
		return nil, &service.Error{Code: service.TooLarge, Err: fmt.Errorf("the result has %d bytes, the limit is %d", len(body), protocol.MaxFrame)}
	}
	return protocol.Append(nil, protocol.KindResult, id, body), nil
}

// output sends output in frames.
func (t *task) output(kind protocol.Kind, data []byte) error {
	for chunk := range slices.Chunk(data, protocol.MaxChunk) {
		if err := t.frame(kind, chunk); err != nil {
			return err
		}
		t.sent.Add(int64(len(chunk)))
	}
	return nil
}

// frame sends a frame of a stream when the client has room for it.
func (t *task) frame(kind protocol.Kind, data []byte) error {
	s, _ := kind.Stream()
	if err := t.credit[s].Take(t.ctx, len(data)); err != nil {
		return err
	}
	return t.send(t.connection.ctx, protocol.Append(nil, kind, t.id, data))
}

// perform performs the operation of a request. A canceled run returns a result, too.
func (t *task) perform(o *operation.Operation, r protocol.Request) (out any, err error) {
	defer t.service.Recover(t.ctx, "session "+r.Method, t.tenant, &err)
	params := r.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	in, err := o.Decode(params, nil)
	if err != nil {
		return nil, service.Refuse(service.Invalid, "the request: %w", err)
	}
	c, err := t.newCall(r)
	if err != nil {
		return nil, err
	}
	out, err = o.Do(t.ctx, c, in)
	if out != nil && errors.Is(err, errCanceled) && errors.Is(context.Cause(t.ctx), errCanceled) {
		err = nil
	}
	if run, ok := out.(*runtime.Result); ok && err == nil {
		run.Truncated.Stdout = t.output(protocol.KindStdout, run.Stdout) != nil || run.Truncated.Stdout
		run.Truncated.Stderr = t.output(protocol.KindStderr, run.Stderr) != nil || run.Truncated.Stderr
		run.Stdout, run.Stderr = nil, nil
	}
	return out, err
}

// newCall returns the call of a request, with the streams that the client has opened.
func (t *task) newCall(r protocol.Request) (c *operation.Call, err error) {
	c = &operation.Call{Service: t.service, Tenant: t.tenant, Upload: t.upload, Download: func(context.Context) io.Writer { return stdout{t} }, Session: t.session, Detached: r.Detached}
	c.Signals = t.signals
	if r.Stdin {
		c.Stdin = t.stdin
	}
	if r.Events {
		c.To = t.sink
	}
	if len(r.Host) == 0 {
		return c, nil
	}
	host, err := operation.DecodeHost(r.Host)
	if err != nil {
		return nil, service.Refuse(service.Invalid, "the request: %w", err)
	}
	if r.Detached && (len(host.Functions) > 0 || host.Commands != nil) {
		return nil, service.Refuse(service.Invalid, "host: a detached sandbox can have no functions and commands, because they end with the session")
	}
	if len(host.Functions) > 0 {
		c.Bind = func(values map[string]json.RawMessage) (map[string]any, error) {
			return t.calls.bind(values, host.Functions)
		}
	}
	c.Calls = runtime.CallLimits{
		Calls: host.Calls.Calls, Concurrent: host.Calls.Concurrent, Arguments: host.Calls.Arguments, Result: host.Calls.Result,
		Timeout: time.Duration(host.Calls.TimeoutMs) * time.Millisecond,
	}
	c.Commands, err = t.calls.commands(host.Commands)
	return c, err
}

// sink sends an event: output as bytes, other events as JSON. It skips a process's last event, which the request's
// result repeats.
func (t *task) sink(e service.Event) error {
	if e.Name == service.EventResult || e.Name == service.EventError {
		return nil
	}
	if o, ok := e.Data.(resultjson.Output); ok {
		kind := protocol.KindStdout
		if e.Name == service.EventStderr {
			kind = protocol.KindStderr
		}
		if o.Bytes == nil {
			o.Bytes = []byte(o.Text)
		}
		return t.output(kind, o.Bytes)
	}
	text, err := json.Marshal(struct {
		Event service.EventName `json:"event"`
		Data  any               `json:"data"`
	}{e.Name, e.Data})
	if err != nil {
		return err
	}
	return t.frame(protocol.KindEvent, text)
}

// signal passes a signal of the client to the run of the task. Signals that no run takes are dropped.
func (t *task) signal(name string) {
	if number := unix.SignalNum(name); number != 0 {
		select {
		case t.signals <- number:
		default:
		}
	}
}

// maxSignals bounds the signals that wait for a run to start.
const maxSignals = 8

// upload returns a reader of the client's standard input. It fails when the task is canceled, so that no
// incomplete content is used.
func (t *task) upload(ctx context.Context, maxBytes int64) (io.Reader, error) {
	context.AfterFunc(ctx, func() { t.stdin.Close(context.Cause(ctx)) })
	return http.MaxBytesReader(nil, io.NopCloser(t.stdin), maxBytes), nil
}

// stdout sends written bytes as standard output.
type stdout struct{ *task }

// Write implements [io.Writer].
func (o stdout) Write(p []byte) (int, error) {
	if err := o.output(protocol.KindStdout, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
