package sandboxtools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Toolbox owns sandboxes and works on them. Its methods may be called from several
// goroutines at once.
type Toolbox struct {
	o    Options
	base *os.File // of ProjectBase; nil without

	closing context.Context // done when Close begins
	cancel  context.CancelFunc
	close   sync.Once
	sources map[string]string // what Options.Images are imported from; "" for the store's own
	pulls   chan struct{}     // holds one element while an image is imported
	calls   sync.WaitGroup    // and ends of sandboxes; grows under mu while not closed

	mu        sync.Mutex
	sandboxes map[string]*sandbox // also those that are being made, and that end
	closed    bool
	err       error // the first of an end that failed
}

// New makes a toolbox without a sandbox.
func New(o Options) (*Toolbox, error) {
	o, err := o.settle()
	if err != nil {
		return nil, fmt.Errorf("gaol: sandbox tools: %w", err)
	}
	t := &Toolbox{o: o, pulls: make(chan struct{}, 1), sandboxes: map[string]*sandbox{}}
	if t.sources, err = sourcesOf(o.Images); err != nil {
		return nil, fmt.Errorf("gaol: sandbox tools: option Images: %w", err)
	}
	if o.ProjectBase != "" {
		if t.base, err = openBase(o.ProjectBase); err != nil {
			return nil, fmt.Errorf("gaol: sandbox tools: option ProjectBase: %w", err)
		}
	}
	t.closing, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// Close ends all sandboxes, and the calls that are under way, with [Closed]. It returns
// when nothing is left of them. Its error is of the first sandbox whose end failed, also
// an earlier one. Closing twice returns the same.
func (t *Toolbox) Close() error {
	t.close.Do(func() {
		t.cancel()
		t.mu.Lock()
		t.closed = true
		for _, s := range t.sandboxes {
			t.startEnd(s)
		}
		t.mu.Unlock()
		t.calls.Wait()
		if t.base != nil {
			t.base.Close()
		}
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Call does what the tool with that name does, with arguments and a result in JSON as
// [Tools] says. All errors are *[Error].
func (t *Toolbox) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	row, known := rows[tool]
	if !known {
		return nil, refuse(UnknownTool, "", "there is no tool %.40q", tool)
	}
	result, err := row.call(ctx, t, args)
	if err != nil {
		return nil, inTool(tool, err)
	}
	out, err := json.Marshal(result)
	if err != nil {
		return nil, inTool(tool, err)
	}
	return out, nil
}

// invoke is a call of a tool with arguments of Go's.
func invoke[A, R any](ctx context.Context, tool string, a A, do func(context.Context, A) (R, error)) (R, error) {
	err := settle(&a)
	if err == nil {
		err = ctx.Err()
	}
	var result R
	if err == nil {
		result, err = do(ctx, a)
	}
	if err != nil {
		return *new(R), inTool(tool, err)
	}
	return result, nil
}

// inSandbox is arguments that name a sandbox.
type inSandbox interface{ container() string }

// use is invoke on a sandbox, which is kept from being idle meanwhile.
func use[A inSandbox, R any](ctx context.Context, t *Toolbox, tool string, a A, do func(context.Context, *sandbox, A) (R, error)) (R, error) {
	return invoke(ctx, tool, a, func(ctx context.Context, a A) (R, error) {
		s, err := t.enter(a.container())
		if err != nil {
			return *new(R), err
		}
		defer t.leave(s)
		return do(ctx, s, a)
	})
}

var errClosed = errors.New("the toolbox is closed")
