package sandboxtools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
)

// Toolbox owns sandboxes and runs tools on them. It is safe for concurrent use.
type Toolbox struct {
	o    Options
	base *os.File // ProjectBase, or nil

	closing context.Context // canceled, with mu held, when Close begins
	cancel  context.CancelFunc
	sources map[string]string // see imageSources
	imports chan struct{}     // semaphore: one import at a time
	pending sync.WaitGroup    // calls, and sandboxes being closed; Add needs mu, before closing is canceled

	mu        sync.Mutex
	sandboxes map[string]*sandbox // includes those being created or closed
	err       error               // first error of closing a sandbox
}

// New returns a toolbox without sandboxes.
func New(o Options) (*Toolbox, error) {
	t, err := newToolbox(o)
	if err != nil {
		return nil, fmt.Errorf("gaol: sandbox tools: %w", err)
	}
	return t, nil
}

func newToolbox(o Options) (*Toolbox, error) {
	o, err := o.normalize()
	if err != nil {
		return nil, err
	}
	t := &Toolbox{o: o, imports: make(chan struct{}, 1), sandboxes: map[string]*sandbox{}}
	if t.sources, err = imageSources(o.Images); err != nil {
		return nil, fmt.Errorf("option Images: %w", err)
	}
	if o.ProjectBase != "" {
		if t.base, err = os.OpenFile(o.ProjectBase, projectFlags, 0); err != nil {
			return nil, fmt.Errorf("option ProjectBase: %w", err)
		}
	}
	t.closing, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// Close closes all sandboxes and waits until they are gone. Calls in progress fail with
// [Closed]. Close returns the first error of closing a sandbox, now or earlier, and may be
// called more than once.
func (t *Toolbox) Close() error {
	t.mu.Lock()
	t.cancel()
	for _, s := range t.sandboxes {
		t.startClose(s)
	}
	t.mu.Unlock()
	t.pending.Wait()
	if t.base != nil {
		t.base.Close() // the second time, it has no effect
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Call calls a tool by its name, with the arguments and the result in JSON as [Tools]
// describes. All errors are *[Error].
func (t *Toolbox) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	i := slices.IndexFunc(table, func(r row) bool { return r.name == tool })
	if i < 0 {
		return nil, refuse(UnknownTool, "", "unknown tool %.40q", tool)
	}
	result, err := table[i].call(ctx, t, args)
	if err == nil {
		return json.Marshal(result) // cannot fail: structs of strings, numbers and booleans
	}
	return nil, inTool(tool, err)
}

// invoke implements a call of a tool: it normalizes the arguments and passes them to do.
func invoke[A, R any](ctx context.Context, tool string, a A, do func(A) (R, error)) (result R, err error) {
	if err = cmp.Or(normalize(&a), ctx.Err()); err == nil {
		result, err = do(a)
	}
	if err != nil {
		return *new(R), inTool(tool, err)
	}
	return result, nil
}

// use implements a call of a tool that works on a sandbox. The sandbox does not expire
// during the call. do receives absolute paths.
func use[A, R any](ctx context.Context, t *Toolbox, tool string, a A, do func(*sandbox, A) (R, error)) (R, error) {
	return invoke(ctx, tool, a, func(a A) (result R, err error) {
		args := reflect.ValueOf(&a).Elem()
		s, err := t.acquire(args.FieldByName("ContainerID").String())
		if err != nil {
			return result, err
		}
		defer t.release(s)
		if err := s.resolvePaths(args); err != nil {
			return result, err
		}
		return do(s, a)
	})
}

func errClosed() error { return refuse(Closed, "", "the toolbox is closed") }
