package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/repl"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
	"gaol/runtime/client"
)

// serverUsage describes --server of commands that need no server.
const serverUsage = "server for the sandbox, by default the one of this machine if you are not root"

// serverOptions selects a server by the path of its socket or a URL. Empty: the socket of [client.Socket].
func serverOptions(server string) client.Options {
	if strings.Contains(server, "://") {
		return client.Options{Address: server}
	}
	return client.Options{Socket: server}
}

// dial connects to a server, see [serverOptions].
func dial(ctx context.Context, server string) (*client.Client, error) {
	c, err := client.Dial(ctx, serverOptions(server))
	if err != nil {
		return nil, adviseServer(err)
	}
	return c, nil
}

// adviseServer replaces the advice that errors of the same kind would have in this process.
func adviseServer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return report.Advise(err, "become a member, for example by `sudo usermod -aG GROUP USER`, and log in again")
	}
	return report.Advise(err, "")
}

// remoteSandbox is a sandbox of a server, with a connection for it alone.
type remoteSandbox struct {
	*client.Sandbox
	connection *client.Client
}

// createRemote creates a sandbox on the server that f names. The server ignores the parts of o for
// which [flags.Sandbox.Check] rejects flags.
func createRemote(ctx context.Context, f *flags.Sandbox, o runtime.Options) (sandbox, error) {
	c, err := dial(ctx, f.Server)
	if err != nil {
		return nil, err
	}
	sb, err := c.Create(ctx, remoteOptions(f, o))
	if err != nil {
		return nil, adviseServer(errors.Join(err, c.Close()))
	}
	return remoteSandbox{sb, c}, nil
}

// remoteOptions returns o as options for a server.
func remoteOptions(f *flags.Sandbox, o runtime.Options) client.CreateOptions {
	return client.CreateOptions{
		Image: o.Image, Snapshot: o.Snapshot, Files: o.Files, Env: o.Env, Cwd: o.Cwd, ReadOnlyRoot: o.ReadOnlyRoot, Hostname: o.Hostname,
		Limits: o.Limits, Permissions: o.Permissions, HostPorts: o.HostPorts, Isolation: f.Isolation,
	}
}

func (sb remoteSandbox) spawn(ctx context.Context, p *program, o runtime.SpawnOptions) (*terminalProcess, error) {
	proc, err := start(ctx, p, o, sb.SpawnCode, sb.Spawn)
	if err != nil {
		return nil, err
	}
	return &terminalProcess{proc, proc.Stdin, proc.Stdout}, nil
}

func (sb remoteSandbox) newContext(ctx context.Context, o runtime.ContextOptions) (repl.Context, error) {
	return sb.NewContext(ctx, o)
}

func (sb remoteSandbox) Dial(ctx context.Context, _ string, port uint16) (net.Conn, error) {
	return sb.Sandbox.Dial(ctx, port)
}

func (sb remoteSandbox) Snapshot(context.Context, runtime.SnapshotOptions) (*runtime.Snapshot, error) {
	return nil, errors.ErrUnsupported // --save is rejected
}

// Limits returns the defaults: servers do not report the limits of a sandbox.
func (sb remoteSandbox) Limits() runtime.Limits { return runtime.DefaultLimits() }

func (sb remoteSandbox) Close() error {
	return errors.Join(sb.Sandbox.Close(), sb.connection.Close())
}

// start starts p by the method for code or for commands of a sandbox.
func start[P any](ctx context.Context, p *program, o runtime.SpawnOptions,
	code func(context.Context, string, runtime.SpawnOptions) (P, error), command func(context.Context, string, []string, runtime.SpawnOptions) (P, error),
) (P, error) {
	if p.command == "" {
		o.Name, o.Format, o.Args = p.Name, p.Format, p.args
		return code(ctx, p.Code, o)
	}
	proc, err := command(ctx, p.command, p.args, o)
	return proc, adviseCommand(err)
}
