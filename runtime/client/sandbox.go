package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
)

// CreateOptions are the options of a sandbox. They mean the same as in [runtime.Options]; the zero
// value is a complete, safe sandbox. The server's operator decides which are allowed.
type CreateOptions struct {
	Image        string // a name in the server's store
	Snapshot     string // of the caller
	Files        map[string][]byte
	Env          map[string]string
	Cwd          string
	ReadOnlyRoot bool
	Hostname     string
	Limits       runtime.Limits
	Permissions  policy.Permissions

	// Isolation is what confines the sandbox: a name that the server allows, such as "native" or
	// "runc". Empty: the server's choice.
	Isolation string

	// Mounts are folders of the server's machine, below the one that its operator allows.
	Mounts          []runtime.Mount
	NodeModules     string
	NodeModulesPath string

	// HostPorts are ports of the server's machine, of those that its operator allows.
	HostPorts []int

	// Bindings are variables of all programs, and functions of this process that they can call.
	Bindings map[string]any
	BigInts  bool                       // of integers that JavaScript's numbers cannot hold, also in Globals
	Commands map[string]runtime.Command // programs that this process implements
	Calls    runtime.CallLimits

	// IdleTimeout is how long the sandbox lives without use, and Lifetime how long at most. Zero
	// means, and the most is, what the server allows.
	IdleTimeout time.Duration
	Lifetime    time.Duration

	// Detached keeps the sandbox when the connection ends, until Close, IdleTimeout or Lifetime.
	// Bindings of a detached sandbox can only be data, and it has no Commands.
	Detached bool
}

// Info describes a sandbox.
type Info struct {
	ID          string    `json:"id"`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires"`     // when it is deleted, unless it is used before
	LifetimeEnd time.Time `json:"lifetimeEnd"` // when it is deleted at the latest
	Isolation   string    `json:"isolation"`   // its name
	Processes   int       `json:"processes"`   // active runs, processes and contexts
	Missing     []string  `json:"missing"`     // rules that the server's kernel does not enforce
}

// Sandbox is a sandbox on the server. Its methods may be called from several goroutines at once.
type Sandbox struct {
	c        *Client
	id       string
	missing  []string
	output   int64 // Limits.Output
	commands *addedCommands
	release  func()
	close    func() error
}

// createParams are the parameters of create.
type createParams struct {
	Image         string              `json:"image,omitempty"`
	Snapshot      string              `json:"snapshot,omitempty"`
	FileBytes     map[string][]byte   `json:"fileBytes,omitempty"`
	Env           map[string]string   `json:"env,omitempty"`
	Cwd           string              `json:"cwd,omitempty"`
	ReadOnly      bool                `json:"readOnly,omitempty"`
	Hostname      string              `json:"hostname,omitempty"`
	Limits        *limits             `json:"limits,omitempty"`
	Permissions   policy.Permissions  `json:"permissions,omitzero"`
	Isolation     string              `json:"isolation,omitempty"`
	Mounts        []mount             `json:"mounts,omitempty"`
	NodeModules   *nodeModules        `json:"nodeModules,omitempty"`
	HostPorts     []int               `json:"hostPorts,omitempty"`
	BigInts       bool                `json:"bigInts,omitempty"`
	IdleTimeoutMs int64               `json:"idleTimeoutMs,omitempty"`
	LifetimeMs    int64               `json:"lifetimeMs,omitempty"`
	Detached      bool                `json:"detached,omitempty"`
	Calls         *session.CallLimits `json:"calls,omitempty"`
	Commands      []session.Command   `json:"commands,omitzero"`
	bindings
}

type limits struct {
	Memory    int64   `json:"memoryBytes,omitempty"`
	CPUs      float64 `json:"cpus,omitempty"`
	CPUTimeMs int64   `json:"cpuTimeMs,omitempty"`
	Pids      int64   `json:"pids,omitempty"`
	Files     int64   `json:"files,omitempty"`
	Disk      int64   `json:"diskBytes,omitempty"`
	Inodes    int64   `json:"inodes,omitempty"`
	Output    int64   `json:"outputBytes,omitempty"`
	Value     int64   `json:"valueBytes,omitempty"`
}

type nodeModules struct {
	HostPath  string `json:"hostPath"`
	GuestPath string `json:"guestPath,omitempty"`
}

func nodeModulesOf(o CreateOptions) *nodeModules {
	if o.NodeModules == "" && o.NodeModulesPath == "" {
		return nil
	}
	return &nodeModules{o.NodeModules, o.NodeModulesPath}
}

type mount struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Access string `json:"access"`
}

var accesses = map[runtime.Access]string{runtime.ReadOnly: "ro", runtime.ReadWrite: "rw", runtime.CopyOnWrite: "cow"}

// Create creates a sandbox. The caller closes it.
func (c *Client) Create(ctx context.Context, o CreateOptions) (*Sandbox, error) {
	b, release, err := c.bind(o.Bindings)
	if err != nil {
		return nil, wrap("create", err)
	}
	p := createParams{
		Image: o.Image, Snapshot: o.Snapshot, FileBytes: o.Files, Env: o.Env, Cwd: o.Cwd, ReadOnly: o.ReadOnlyRoot, Hostname: o.Hostname,
		Limits: limitsOf(o.Limits), Permissions: o.Permissions, Isolation: o.Isolation, NodeModules: nodeModulesOf(o), HostPorts: o.HostPorts, BigInts: o.BigInts, Calls: callLimitsOf(o.Calls), bindings: b,
		IdleTimeoutMs: milliseconds(o.IdleTimeout), LifetimeMs: milliseconds(o.Lifetime), Detached: o.Detached,
	}
	for _, m := range o.Mounts {
		p.Mounts = append(p.Mounts, mount{m.Source, m.Target, accesses[m.Access]})
	}
	var added addedCommands
	p.Commands = added.bind(c, o.Commands)
	var info Info
	if err := c.do(ctx, "create", p, &info); err != nil {
		release()
		added.release(c)
		return nil, wrap("create", err)
	}
	sb := c.Sandbox(info.ID)
	sb.missing, sb.commands = info.Missing, &added
	sb.release = func() {
		release()
		added.release(c)
	}
	if o.Limits.Output > 0 {
		sb.output = o.Limits.Output
	}
	return sb, nil
}

func limitsOf(l runtime.Limits) *limits {
	if l == (runtime.Limits{}) {
		return nil
	}
	return &limits{l.Memory, l.CPUs, milliseconds(l.CPUTime), l.Pids, l.Files, l.Disk, l.Inodes, l.Output, l.Value}
}

func callLimitsOf(l runtime.CallLimits) *session.CallLimits {
	if l == (runtime.CallLimits{}) {
		return nil
	}
	return &session.CallLimits{Calls: l.Calls, Concurrent: l.Concurrent, Arguments: l.Arguments, Result: l.Result, TimeoutMs: milliseconds(l.Timeout)}
}

// milliseconds rounds up, so that a short time is not none.
func milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return int64(d / time.Millisecond)
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Sandbox returns a sandbox that the caller has created elsewhere, such as a detached one. It does not
// ask the server whether it exists.
func (c *Client) Sandbox(id string) *Sandbox {
	sb := &Sandbox{c: c, id: id, commands: &addedCommands{}, output: runtime.DefaultLimits().Output, release: func() {}}
	sb.close = sync.OnceValue(func() error {
		defer sb.release()
		err := c.do(context.Background(), "close", sandboxParams{id}, nil)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDisconnected) {
			return nil // it has ended before, or ends with the connection
		}
		return err
	})
	return sb
}

// sandboxParams name a sandbox.
type sandboxParams struct {
	Sandbox string `json:"sandbox"`
}

// Sandboxes describes the caller's sandboxes, the oldest first.
func (c *Client) Sandboxes(ctx context.Context) ([]Info, error) {
	var list struct{ Sandboxes []Info }
	if err := c.do(ctx, "list", struct{}{}, &list); err != nil {
		return nil, wrap("list", err)
	}
	return list.Sandboxes, nil
}

// ID returns the sandbox's name on the server.
func (sb *Sandbox) ID() string { return sb.id }

// Missing describes the parts of the sandbox's permissions that the server's kernel does not
// enforce.
func (sb *Sandbox) Missing() []string { return sb.missing }

// Info describes the sandbox, without renewing it.
func (sb *Sandbox) Info(ctx context.Context) (Info, error) {
	var info Info
	err := sb.c.do(ctx, "get", sandboxParams{sb.id}, &info)
	return info, wrap("sandbox", err)
}

// Renew restarts the idle timeout of the sandbox.
func (sb *Sandbox) Renew(ctx context.Context) (Info, error) {
	var info Info
	err := sb.c.do(ctx, "renew", sandboxParams{sb.id}, &info)
	return info, wrap("renew", err)
}

// Close kills all that runs in the sandbox, and removes it with its files. Further calls return the
// error of the first.
func (sb *Sandbox) Close() error { return wrap("close", sb.close()) }

// wrap adds what failed to an error.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok && strings.HasPrefix(e.Detail, sdkPrefix) {
		return err
	}
	return fmt.Errorf("gaol: %s: %w", doing, err)
}
