package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/tenant"
)

// addContent adds the operations on what sandboxes contain: files, snapshots and servers.
func (a *API) addContent() {
	a.addFiles()
	a.addArchives()
	a.addSnapshots()
	a.addPorts()
}

func tenantOf(ctx context.Context) *tenant.Tenant { return tenant.FromContext(ctx) }

// inSandbox is a request about a sandbox.
type inSandbox[T any] interface {
	*T
	sandbox() InSandbox
}

func (in InSandbox) sandbox() InSandbox { return in }

// addUse adds an operation that uses a sandbox, and does not count as a run.
func addUse[T any, In inSandbox[T], Out any](a *API, op huma.Operation, do func(context.Context, *service.Sandbox, In) (*Out, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *T) (*Out, error) {
		ctx, sb, release, err := a.use(ctx, In(in).sandbox())
		if err != nil {
			return nil, err
		}
		defer release()
		out, err := do(ctx, sb, in)
		if err != nil {
			return nil, asProblem(err)
		}
		return out, nil
	})
}

// asProblem returns an error that is a problem already as it is.
func asProblem(err error) error {
	if _, ok := errors.AsType[huma.StatusError](err); ok {
		return err
	}
	return fail(err)
}

// fileStatuses are the statuses of errors that operations on files have.
var fileStatuses = []int{
	http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
	http.StatusInsufficientStorage,
}

// binary describes bytes of any kind.
func binary(kinds ...string) map[string]*huma.MediaType {
	content := map[string]*huma.MediaType{}
	for _, kind := range kinds {
		content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return content
}
