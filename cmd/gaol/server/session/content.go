package session

import (
	"context"
	"io"
	"net/http"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
	protocol "gaol/internal/session"
)

// addUse adds a method that uses a sandbox, and does not count as a run.
func addUse[Params interface{ sandbox() string }](m *methodSet, name string, do func(*task, *service.Sandbox, Params) (any, error)) {
	add(m, name, func(t *task, p Params) (any, error) {
		audit.Of(t.ctx).SetSandbox(p.sandbox())
		ctx, sb, release, err := t.service.Use(t.ctx, t.tenant, p.sandbox())
		if err != nil {
			return nil, err
		}
		defer release()
		t.ctx = ctx // which also ends with the service
		return do(t, sb, p)
	})
}

func (p SandboxParams) sandbox() string { return p.Sandbox }

// upload returns what the client sends as standard input, at most the tenant's quota. It fails when
// the task is canceled, so that no incomplete content is used. The caller calls stop.
func (t *task) upload(sb *service.Sandbox) (body io.Reader, stop func()) {
	return http.MaxBytesReader(nil, io.NopCloser(t.stdin), sb.MaxUpload()), t.closeInput()
}

// closeInput makes reads of standard input fail when the task is canceled, until stop is called.
func (t *task) closeInput() (stop func()) {
	cancel := context.AfterFunc(t.ctx, func() { t.stdin.Close(context.Cause(t.ctx)) })
	return func() { cancel() }
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
