package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"sync"
	"time"

	"gaol/internal/session"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
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

	// Mounts are folders of the server's machine, below the folder that its operator allows.
	Mounts                       []runtime.Mount
	NodeModules, NodeModulesPath string

	// HostPorts are ports of the server's machine that its operator allows.
	HostPorts []int

	// Bindings are variables of all programs, and functions of this process that they can call.
	Bindings map[string]any
	BigInts  bool                           // of integers that JavaScript's numbers cannot hold, also in Globals
	Commands map[string]runtime.HostCommand // programs that this process implements
	Calls    runtime.CallLimits

	// IdleTimeout is how long the sandbox lives without use, and Lifetime how long at most. The
	// default, and the maximum, is the server's.
	IdleTimeout, Lifetime time.Duration

	// Detached keeps the sandbox when the connection ends, until Close, IdleTimeout or Lifetime.
	// Bindings of a detached sandbox can only be data, and Commands must be empty.
	Detached bool
}

// Info describes a sandbox.
type Info = resultjson.SandboxInfo

// Usage counts the resources that a sandbox uses.
type Usage = resultjson.SandboxUsage

// SnapshotInfo describes a snapshot of the caller.
type SnapshotInfo = resultjson.SnapshotInfo

// Sandbox is a sandbox on the server. Its methods may be called concurrently.
type Sandbox struct {
	c       *Client
	id      string
	missing []string
	output  int64 // Limits.Output
	bound   *bound
	close   func() error
}

var accesses = map[runtime.Access]string{runtime.ReadOnly: "ro", runtime.ReadWrite: "rw", runtime.CopyOnWrite: "cow"}

// Create creates a sandbox. The caller closes it.
func (c *Client) Create(ctx context.Context, o CreateOptions) (*Sandbox, error) {
	values, host, b, err := c.bind(o.Bindings)
	if err != nil {
		return nil, wrap("create", err)
	}
	l := o.Calls
	host.Calls = session.CallLimits{Calls: l.Calls, Concurrent: l.Concurrent, Arguments: l.Arguments, Result: l.Result, TimeoutMs: milliseconds(l.Timeout)}
	host.Commands = b.addCommands(o.Commands)
	m := message{Request: session.Request{Method: "createSandbox", Detached: o.Detached, Host: encodeHost(host)}, doing: "create", in: createRequest(o, values)}
	info, err := call[Info](ctx, c, m)
	if err != nil {
		b.release()
		return nil, err
	}
	sb := c.Sandbox(info.ID)
	sb.missing, sb.bound = info.Missing, b
	if o.Limits.Output > 0 {
		sb.output = o.Limits.Output
	}
	return sb, nil
}

func createRequest(o CreateOptions, globals map[string]json.RawMessage) requestjson.SandboxRequest {
	r := requestjson.SandboxRequest{
		Permissions: o.Permissions, Globals: globals, Env: o.Env, Cwd: o.Cwd,
		IdleTimeoutMs: milliseconds(o.IdleTimeout), LifetimeMs: milliseconds(o.Lifetime),
		Tree: requestjson.Tree{
			Image: o.Image, Snapshot: o.Snapshot, FileBytes: o.Files, ReadOnly: o.ReadOnlyRoot, Hostname: o.Hostname, Limits: limitsOf(o.Limits),
			Isolation: o.Isolation, HostPorts: o.HostPorts, BigInts: o.BigInts, NodeModules: requestjson.NodeModules{HostPath: o.NodeModules, GuestPath: o.NodeModulesPath},
		},
	}
	for _, m := range o.Mounts {
		r.Mounts = append(r.Mounts, requestjson.Mount{Source: m.Source, Target: m.Target, Access: accesses[m.Access]})
	}
	return r
}

func limitsOf(l runtime.Limits) *requestjson.Limits {
	if l == (runtime.Limits{}) {
		return nil
	}
	return &requestjson.Limits{
		Memory: l.Memory, CPUs: l.CPUs, CPUTimeMs: milliseconds(l.CPUTime), Pids: l.Pids, OpenFiles: l.OpenFiles, Disk: l.Disk, Files: l.Files,
		Output: l.Output, Value: l.Value,
	}
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
	sb := &Sandbox{c: c, id: id, bound: &bound{c: c}, output: runtime.DefaultLimits().Output}
	sb.close = sync.OnceValue(func() error {
		defer sb.bound.release()
		err := c.do(context.Background(), "deleteSandbox", "close", sb.in())
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrSandboxLost) || errors.Is(err, ErrDisconnected) {
			return nil // it has ended before, or ends with the connection
		}
		return err
	})
	return sb
}

// Sandboxes describes the caller's sandboxes, the oldest first. If the error is a [*MissingError], the list is a part.
func (c *Client) Sandboxes(ctx context.Context) ([]Info, error) {
	list, err := get[struct {
		Sandboxes []Info
		resultjson.MissingNodes
	}](ctx, c, "listSandboxes", "list", struct{}{})
	return list.Sandboxes, incomplete("list", list.Missing, err)
}

// incomplete returns err, or a [*MissingError] if a list lacks the part of some nodes.
func incomplete(doing string, nodes []string, err error) error {
	if err == nil && len(nodes) > 0 {
		err = wrap(doing, &MissingError{nodes})
	}
	return err
}

// ID returns the sandbox's name on the server.
func (sb *Sandbox) ID() string { return sb.id }

// Missing describes the parts of the sandbox's permissions that the server's kernel does not
// enforce.
func (sb *Sandbox) Missing() []string { return sb.missing }

// Info describes the sandbox, without renewing it.
func (sb *Sandbox) Info(ctx context.Context) (Info, error) {
	return get[Info](ctx, sb.c, "getSandbox", "sandbox", sb.in())
}

// Renew restarts the idle timeout of the sandbox.
func (sb *Sandbox) Renew(ctx context.Context) (Info, error) {
	return get[Info](ctx, sb.c, "renewSandbox", "renew", sb.in())
}

// Pause stops all processes of the sandbox until Resume, as [runtime.NodeRuntime.Pause] does. A paused sandbox expires like others.
func (sb *Sandbox) Pause(ctx context.Context) error {
	return sb.c.do(ctx, "pauseSandbox", "pause", sb.in())
}

// Resume lets the processes of a paused sandbox continue.
func (sb *Sandbox) Resume(ctx context.Context) error {
	return sb.c.do(ctx, "resumeSandbox", "resume", sb.in())
}

// Close kills all that runs in the sandbox, and removes it with its files. Further calls return the
// error of the first.
func (sb *Sandbox) Close() error { return sb.close() }

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

// Usage returns the sandbox's current usage.
func (sb *Sandbox) Usage(ctx context.Context) (Usage, error) {
	return get[Usage](ctx, sb.c, "getUsage", "usage", sb.in())
}

// Snapshot copies the folders of the sandbox to a snapshot with a new name, which
// [CreateOptions.Snapshot] can have. It outlives the sandbox and the connection.
func (sb *Sandbox) Snapshot(ctx context.Context, name string) (SnapshotInfo, error) {
	return get[SnapshotInfo](ctx, sb.c, "takeSnapshot", "snapshot", requestjson.SnapshotIn{InSandbox: sb.in(), Name: name})
}

// Snapshots lists the caller's snapshots, by name. If the error is a [*MissingError], the list is a part.
func (c *Client) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	list, err := get[struct {
		Snapshots []SnapshotInfo
		resultjson.MissingNodes
	}](ctx, c, "listSnapshots", "list snapshots", struct{}{})
	return list.Snapshots, incomplete("list snapshots", list.Missing, err)
}

// RemoveSnapshot deletes a snapshot that no sandbox uses.
func (c *Client) RemoveSnapshot(ctx context.Context, name string) error {
	return c.do(ctx, "deleteSnapshot", "remove snapshot", requestjson.SnapshotName{Name: name})
}

// Listeners returns the TCP addresses in the sandbox on which guests listen, in order, as
// [runtime.NodeRuntime.Listeners] does.
func (sb *Sandbox) Listeners(ctx context.Context) (addresses []netip.AddrPort, err error) {
	list, err := get[struct {
		Listeners []struct {
			Address netip.Addr
			Port    uint16
		}
	}](ctx, sb.c, "listListeners", "listeners", sb.in())
	for _, l := range list.Listeners {
		addresses = append(addresses, netip.AddrPortFrom(l.Address, l.Port))
	}
	return addresses, err
}

// WaitForListener waits until a guest listens on a port so that Dial can connect. It ends with ctx
// or the sandbox.
func (sb *Sandbox) WaitForListener(ctx context.Context, port uint16) error {
	for {
		state, err := get[resultjson.PortState](ctx, sb.c, "waitForPort", "wait for listener", requestjson.InPort{InSandbox: sb.in(), Port: port})
		if err != nil || state.Listening {
			return err
		}
	}
}
