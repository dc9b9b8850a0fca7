package runtime

import (
	"context"

	"gaol/runtime/internal/sandbox"
)

// Resources counts the processes, descriptors and sockets of a runtime's active runs, and the content
// of its tree.
type Resources = sandbox.Resources

// Resources counts what the runtime uses now. Guests may change it meanwhile. At most 16,384
// descriptors are looked at.
func (rt *NodeRuntime) Resources(ctx context.Context) (_ Resources, err error) {
	defer wrap(&err, "resources")
	ctx, done, err := rt.dialed.begin(ctx, rt.alive)
	if err != nil {
		return Resources{}, err
	}
	defer done()
	r, err := rt.sandbox.Resources(ctx)
	if err != nil {
		return Resources{}, rt.orDied(err)
	}
	return r, nil
}
