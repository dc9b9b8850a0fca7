package sandboxtools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"gaol/internal/schema"
	"gaol/runtime"
	"gaol/vfs/hostfs"
)

// Toolbox owns sandboxes and runs tools on them. It is safe for concurrent use.
type Toolbox struct {
	o    Options
	base *os.File // ProjectBase, or nil

	closing context.Context // canceled, with mu held, when Close begins
	cancel  context.CancelFunc
	imports chan struct{}  // semaphore: one import at a time
	pending sync.WaitGroup // calls, and sandboxes being closed; Add needs mu, before closing is canceled

	mu        sync.Mutex
	sandboxes map[string]*sandbox // nil for those being created or closed
	err       error               // first error of closing a sandbox
}

// New returns a toolbox without sandboxes.
func New(o Options) (*Toolbox, error) {
	err := o.complete()
	var base *os.File
	if err == nil && o.ProjectBase != "" {
		base, err = os.OpenFile(o.ProjectBase, projectFlags, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("gaol: sandbox tools: %w", err)
	}
	t := &Toolbox{o: o, base: base, imports: make(chan struct{}, 1), sandboxes: map[string]*sandbox{}}
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
		if s != nil {
			t.startClose(s)
		}
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

// maxCall is the maximum size of the JSON text of a call, in bytes. It has room for the
// largest content, with the escapes that text with newlines and quotes needs.
const maxCall = 64 << 20

// Call calls a tool by its name, with the arguments and the result in JSON as [Tools]
// describes. All errors are *[Error].
func (t *Toolbox) Call(ctx context.Context, tool string, args json.RawMessage) (json.RawMessage, error) {
	i := slices.IndexFunc(table(), func(r row) bool { return r.Name == tool })
	if i < 0 {
		return nil, refuse(UnknownTool, "", "unknown tool %.40q", tool)
	}
	result, err := table()[i].perform(ctx, t, args)
	if err == nil {
		return json.Marshal(result) // cannot fail: structs of strings, numbers and booleans
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Code: codeFor(err), Err: err}
	}
	e.Tool = tool
	return nil, e
}

// perform decodes the arguments and calls the tool.
func (r row) perform(ctx context.Context, t *Toolbox, args json.RawMessage) (any, error) {
	if len(args) > maxCall {
		return nil, refuse(InvalidArgument, "", "%d bytes of JSON, the limit is %d", len(args), maxCall)
	}
	a, err := r.args.Decode(args, nil)
	if invalid, ok := errors.AsType[*schema.InvalidError](err); ok {
		return nil, &Error{Code: InvalidArgument, Place: invalid.Details[0].Location, Err: errors.New(invalid.Details[0].Message)}
	}
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	in, ok := a.(interface{ container() string })
	if !ok {
		return r.call(ctx, t, a)
	}
	sb, err := t.acquire(in.container()) // it does not expire during the call
	if err != nil {
		return nil, err
	}
	defer t.release(sb)
	if f, ok := a.(interface{ path() *string }); ok {
		if *f.path(), err = sb.resolve("path", *f.path()); err != nil {
			return nil, err
		}
	}
	return r.call(ctx, sb, a)
}

func (in *InSandbox) container() string { return in.ContainerID }

func (in *InFile) path() *string { return &in.Path }

func errClosed() error { return refuse(Closed, "", "the toolbox is closed") }

// Tool describes a tool, in the terms of the protocols that offer tools to models.
type Tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`  // JSON Schema, draft 2020-12
	OutputSchema json.RawMessage `json:"outputSchema"` // likewise
}

// Tools returns all tools. Their schemas are derived from the structs that [Toolbox.Call]
// decodes and encodes.
func Tools() []Tool {
	list := make([]Tool, 0, len(table()))
	for _, r := range table() {
		t := r.Tool
		t.InputSchema, t.OutputSchema = slices.Clone(t.InputSchema), slices.Clone(t.OutputSchema)
		list = append(list, t)
	}
	return list
}

// row is a tool with its implementation.
type row struct {
	Tool
	args *schema.Input
	call func(ctx context.Context, receiver, args any) (any, error)
}

// types holds the types of all tools.
var types = schema.NewSet()

// tool describes a tool. Its receiver is the sandbox of a call whose arguments name one, and else the toolbox.
func tool[T *Toolbox | *sandbox, A, R any](name, about string, do func(T, context.Context, *A) (R, error)) row {
	args := types.Input(reflect.TypeFor[A](), name)
	return row{
		Tool{name, about, schemaText(args.View()), schemaText(types.View(reflect.TypeFor[R]()))}, args,
		func(ctx context.Context, receiver, a any) (any, error) { return do(receiver.(T), ctx, a.(*A)) },
	}
}

func schemaText(view *huma.Schema) json.RawMessage {
	view.Extensions = map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema"}
	text, err := json.Marshal(view)
	if err != nil {
		panic(err) // it is from our own tags
	}
	return text
}

// table holds the tools. It is built on first use.
var table = sync.OnceValue(func() []row {
	return []row{
		tool("sandbox_init", "Creates a sandbox for untrusted Node.js programs and their files.", (*Toolbox).init),
		tool("sandbox_destroy", "Destroys a sandbox: kills its commands and deletes its files.", (*sandbox).destroy),
		tool("sandbox_command", "Runs a program in a sandbox, without a shell, and returns its output and exit code.", (*sandbox).command),
		tool("sandbox_write_file", "Writes a file in a sandbox. An existing file is replaced.", (*sandbox).writeFile),
		tool("sandbox_read_file", "Reads a file in a sandbox.", (*sandbox).readFile),
		tool("sandbox_list_directory", "Lists a folder in a sandbox.", (*sandbox).listDirectory),
		tool("sandbox_create_directory", "Creates a folder in a sandbox.", (*sandbox).createDirectory),
		tool("sandbox_delete", "Deletes a file, a link or a folder in a sandbox. The target of a link remains.", (*sandbox).delete),
		tool("sandbox_exists", "Reports whether a path exists in a sandbox.", (*sandbox).exists),
		tool("sandbox_file_info", "Reports the type, size, permissions, owner and times of a path in a sandbox. A link is not followed.", (*sandbox).fileInfo),
	}
})

// Options configure a [Toolbox]. The zero value allows 16 sandboxes with the defaults of
// package runtime, and shares no folder of the host.
type Options struct {
	// Create configures the runtime of each sandbox: limits, permissions, variables, store,
	// and the default image. Hostname and Cwd come from the calls and must be empty. A zero
	// Limits.Output is 1 MiB here, as models read the results.
	Create runtime.Options

	// Images are the allowed values of imageName, in addition to the image of Create, with the
	// source of each: a registry reference that begins with docker://, or the absolute path of
	// an OCI layout, a docker save archive, or a tar or folder of a root file system, as for
	// `gaol image import`. An empty source means a name or id in the store. Nil allows the
	// images in the store, and nothing else.
	//
	// Sources are imported on first use. From then on the store's copy is used, even if
	// the source changes, until it is removed by `gaol image rm`.
	//
	// Where the launcher of Create cannot start an image's Node, or the image has none,
	// LauncherExec is used: the tools run commands only.
	Images map[string]string

	// ProjectBase is the absolute path of an existing folder on the host. A projectOutPath
	// must be below it. Empty: projectOutPath is refused.
	//
	// Only the file system limits what guests write there.
	ProjectBase string

	// MaxSandboxes is the maximum number of sandboxes. Zero: 16. Each may use as
	// much as Create.Limits allow.
	MaxSandboxes int

	// Open creates a sandbox. Nil: [runtime.Create]. An [*Error] of it, or of a command, keeps its code.
	Open func(context.Context, runtime.Options) (Sandbox, error)

	// IdleLimit is how long a sandbox lives without a call. The time starts again when a
	// call ends. Zero: 10 minutes.
	IdleLimit time.Duration
}

// Sandbox is a [runtime.NodeRuntime], or another type that wraps one.
type Sandbox interface {
	FS() hostfs.Files
	Command(ctx context.Context, name string, args []string, o runtime.RunOptions) (*runtime.Result, error)
	Close() error
}

// complete validates the options and fills in the defaults.
func (o *Options) complete() error {
	switch {
	case o.MaxSandboxes < 0:
		return fmt.Errorf("option MaxSandboxes: %d is negative", o.MaxSandboxes)
	case o.IdleLimit < 0:
		return fmt.Errorf("option IdleLimit: %v is negative", o.IdleLimit)
	case o.Create.Hostname != "" || o.Create.Cwd != "":
		return errors.New("option Create: Hostname and Cwd come from the calls")
	case o.ProjectBase != "" && !filepath.IsAbs(o.ProjectBase):
		return fmt.Errorf("option ProjectBase: %q is not an absolute path", o.ProjectBase)
	}
	o.MaxSandboxes = cmp.Or(o.MaxSandboxes, 16)
	o.IdleLimit = cmp.Or(o.IdleLimit, 10*time.Minute)
	o.Create.Limits.Output = cmp.Or(o.Create.Limits.Output, 1<<20)
	if o.Open == nil {
		o.Open = func(ctx context.Context, o runtime.Options) (Sandbox, error) { return runtime.Create(ctx, o) }
	}
	return nil
}
