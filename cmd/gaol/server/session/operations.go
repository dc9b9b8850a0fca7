package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// perform performs the operation of a request. A canceled run returns a result, too.
func (t *task) perform(o *operation.Operation, r protocol.Request) (out any, err error) {
	defer t.service.Recover("session "+r.Method, t.tenant, &err)
	params := r.Params
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	in, err := o.Decode(params, nil)
	if err != nil {
		return nil, service.Refuse(service.Invalid, "the request: %w", err)
	}
	c, err := t.newCall(o, r)
	if err != nil {
		return nil, err
	}
	out, err = o.Do(t.ctx, c, in)
	if out != nil && errors.Is(err, errCanceled) && errors.Is(context.Cause(t.ctx), errCanceled) {
		err = nil
	}
	if run, ok := out.(*runtime.Result); ok && err == nil {
		t.sendOutput(run)
	}
	return out, err
}

// newCall returns the call of a request, with the streams that the client has opened.
func (t *task) newCall(o *operation.Operation, r protocol.Request) (c *operation.Call, err error) {
	c = &operation.Call{Service: t.service, Tenant: t.tenant, Upload: t.upload, Download: stdout{t}, Session: t.session, Detached: r.Detached}
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
	c.Calls = callLimits(host.Calls)
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
	data, err := operation.Encode(e.Data)
	if err != nil {
		return err
	}
	return t.event(protocol.Event{Event: string(e.Name), Data: data})
}

// sendOutput sends the output of a run, which its result then lacks.
func (t *task) sendOutput(r *runtime.Result) {
	r.Truncated.Stdout = t.output(protocol.KindStdout, r.Stdout) != nil || r.Truncated.Stdout
	r.Truncated.Stderr = t.output(protocol.KindStderr, r.Stderr) != nil || r.Truncated.Stderr
	r.Stdout, r.Stderr = nil, nil
}

// signal passes a signal of the client to the run of the task. Signals that no run takes are dropped.
func (t *task) signal(name string) error {
	number := unix.SignalNum(name)
	if number == 0 {
		return nil
	}
	select {
	case t.signals <- number:
	default:
	}
	return nil
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
