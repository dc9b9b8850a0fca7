package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// ContextRequest is a context to create.
type ContextRequest struct {
	Globals       map[string]json.RawMessage `json:"globals,omitempty" doc:"Variables of all cells."`
	Permissions   json.RawMessage            `json:"permissions,omitempty" doc:"As for a run."`
	Env           map[string]string          `json:"env,omitempty" doc:"Environment variables."`
	Cwd           string                     `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory."`
	IdleTimeoutMs int64                      `json:"idleTimeoutMs,omitempty" minimum:"0" doc:"How long it lives without a cell. By default 600,000. It ends with its sandbox, too."`
	LastValue     bool                       `json:"lastValue,omitempty" doc:"Keep the value of the last cell in the variable _, as Node's REPL does."`
}

// Cell is code to evaluate in a context.
type Cell struct {
	Code         string                     `json:"code" maxLength:"4194304" doc:"A snippet, as for evaluate. It sees the declarations of earlier cells."`
	Globals      map[string]json.RawMessage `json:"globals,omitempty" doc:"Variables to set before."`
	TimeoutMs    int64                      `json:"timeoutMs,omitempty" minimum:"0" doc:"Wall-clock time limit. By default 30,000."`
	MaxOutput    int64                      `json:"maxOutput,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of JSON that its value may have. By default 1 MiB."`
	MaxLogs      int                        `json:"maxLogs,omitempty" minimum:"0" maximum:"10000" doc:"Lines of console to keep. By default 100."`
	MaxLogLength int                        `json:"maxLogLength,omitempty" minimum:"0" maximum:"100000" doc:"Characters of one line. By default 1,000."`
	Form         runtime.ResultForm         `json:"form,omitempty" enum:"text,colors" doc:"As for evaluate."`
}

// ContextInfo describes a context.
type ContextInfo struct {
	ID      string       `json:"id" doc:"Its name in other requests."`
	State   ProcessState `json:"state" enum:"running,ended"`
	Created time.Time    `json:"created"`
	Cells   int          `json:"cells" doc:"Cells that are evaluated or wait for their turn."`
	Reason  string       `json:"reason,omitempty" doc:"Why it has ended."`
}

// Completion are the names that can complete the last name of a line.
type Completion struct {
	Prefix string   `json:"prefix" doc:"The end of the line that all names begin with."`
	Names  []string `json:"names" doc:"At most 1,000, in alphabetical order. They come from the guest."`
}

// maxCells bounds the cells of a context that are evaluated or wait, and its other requests.
const maxCells = 16

// Context is a Node process of a sandbox that keeps the declarations of its cells.
type Context struct {
	ID string

	sandbox *Sandbox
	context *runtime.Context
	since   time.Time

	mu    sync.Mutex
	cells map[*cell]struct{}

	ended chan struct{} // closed when it has ended and is retained
}

// cell is a cell that is evaluated or waits.
type cell struct{ cancel context.CancelCauseFunc }

// NewContext starts a context. It lives until it is deleted, exits, exceeds a limit or is not used
// for its idle timeout, or its sandbox ends.
func (sb *Sandbox) NewContext(ctx context.Context, r ContextRequest) (*ContextInfo, error) {
	o := runtime.ContextOptions{Globals: globals(r.Globals), Env: r.Env, Cwd: r.Cwd, LastValue: r.LastValue}
	var err error
	if o.Permissions, err = parsePermissions(r.Permissions); err != nil {
		return nil, err
	}
	if r.IdleTimeoutMs > 0 {
		if o.IdleTimeout, err = bounded("idleTimeoutMs", r.IdleTimeoutMs, sb.service.settings.Load().LifetimeMs); err != nil {
			return nil, err
		}
	}
	var started *runtime.Context
	release, leave, err := sb.start(ctx, "create a context", func() (err error) {
		started, err = sb.NodeRuntime.NewContext(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &Context{ID: newID("c-"), sandbox: sb, context: started, since: time.Now(), cells: map[*cell]struct{}{}, ended: make(chan struct{})}
	insert(&sb.longLived, &sb.longLived.contexts, c.ID, c)
	go func() {
		defer leave()
		<-started.Done()
		_ = started.Close() // stops its timer; the reason of its end stays
		release()
		sb.retain(c.ID, 4*eventSize)
		close(c.ended)
	}()
	return c.Info(), nil
}

// globals converts variables of a request.
func globals(m map[string]json.RawMessage) map[string]any {
	all := make(map[string]any, len(m))
	for name, value := range m {
		all[name] = value
	}
	return all
}

// Context returns a context of the sandbox.
func (sb *Sandbox) Context(id string) (*Context, error) {
	return find(&sb.longLived, &sb.longLived.contexts, "context", id)
}

// Contexts describes the contexts of the sandbox, the oldest first.
func (sb *Sandbox) Contexts() []*ContextInfo {
	list := []*ContextInfo{}
	for _, c := range byAge(&sb.longLived, &sb.longLived.contexts, func(c *Context) time.Time { return c.since }) {
		list = append(list, c.Info())
	}
	return list
}

// Info describes the context.
func (c *Context) Info() *ContextInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	info := &ContextInfo{ID: c.ID, State: Running, Created: c.since, Cells: len(c.cells)}
	if err := c.context.Err(); err != nil {
		info.State, info.Reason = Ended, err.Error()
	}
	return info
}

// errInterrupted is why a cell ends that Interrupt has canceled.
var errInterrupted = errors.New("the cell was interrupted")

// begin counts a cell, or another request that waits for its turn like one. The returned context
// also ends with Interrupt.
func (c *Context) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cells) >= maxCells {
		return nil, nil, exceeded("%d cells already wait for the context", maxCells)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l := &cell{cancel}
	c.cells[l] = struct{}{}
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.cells, l)
	}, nil
}

// Evaluate evaluates a cell when the earlier ones are done. If ctx ends, the cell is interrupted.
// The lines that it prints are also sent to a sink unless it is nil.
func (c *Context) Evaluate(ctx context.Context, r Cell, to Sink) (*resultjson.Evaluation, error) {
	o, err := c.options(r)
	if err != nil {
		return nil, err
	}
	ctx, end, err := c.sandbox.service.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, leave, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if to != nil {
		o.OnLog = func(l runtime.Log) {
			if err := to(Event{Name: EventLog, Data: resultjson.NewLog(l)}); err != nil {
				cancel(err)
			}
		}
	}
	return c.evaluate(ctx, r.Code, o)
}

func (c *Context) evaluate(ctx context.Context, code string, o runtime.EvaluateOptions) (*resultjson.Evaluation, error) {
	recordCode(ctx, code, nil)
	e, err := c.context.Evaluate(ctx, code, o)
	c.sandbox.service.recordEvaluation(ctx, KindCell, e, err)
	if err != nil && (e == nil || !errors.Is(err, errInterrupted)) {
		return nil, begun(c.sandbox.fail("evaluate a cell", err))
	}
	return resultjson.NewEvaluation(e), nil
}

func (c *Context) options(r Cell) (o runtime.EvaluateOptions, err error) {
	o = runtime.EvaluateOptions{
		Globals: globals(r.Globals), MaxOutput: cmp.Or(r.MaxOutput, 1<<20),
		MaxLogs: cmp.Or(r.MaxLogs, 100), MaxLogLength: cmp.Or(r.MaxLogLength, 1000), Form: r.Form,
	}
	if err = checkLogs(o.MaxLogs, o.MaxLogLength); err != nil {
		return o, err
	}
	o.Timeout, err = c.sandbox.timeout(r.TimeoutMs)
	return o, err
}

// maxLogs bounds the lines that an evaluation keeps, in characters.
const maxLogs = 16 << 20

// checkLogs checks how many lines an evaluation keeps, of how many characters each.
func checkLogs(lines, length int) error {
	if lines*length > maxLogs {
		return refuse(Invalid, "maxLogs: %d lines of %d characters are more than %d characters", lines, length, maxLogs)
	}
	return nil
}

// Interrupt cancels the current cell and those that wait, and returns how many there were.
func (c *Context) Interrupt() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.cells {
		l.cancel(errInterrupted)
	}
	return len(c.cells)
}

// Complete returns the names that can complete the last name of a line.
func (c *Context) Complete(ctx context.Context, line string) (*Completion, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	prefix, names, err := c.context.Complete(ctx, line)
	if err != nil && !errors.Is(err, errInterrupted) {
		return nil, c.sandbox.fail("complete a line", err)
	}
	if names == nil {
		names = []string{}
	}
	return &Completion{prefix, names}, nil
}

// Delete ends the context, and its cells, and forgets it.
func (c *Context) Delete() error {
	err := c.context.Close()
	<-c.ended
	c.sandbox.service.retained.remove(c.sandbox, c.ID)
	return c.sandbox.fail("close a context", err)
}
