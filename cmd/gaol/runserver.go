package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
	"gaol/runtime/client"
)

// addServer defines --server.
func addServer(set *pflag.FlagSet, socket *string, usage string) {
	set.StringVar(socket, "server", "", usage)
	set.Lookup("server").NoOptDefVal = client.Socket()
}

// findServer returns the socket of a server for users without root, which making a jail needs.
func findServer() (socket string, ok bool) {
	if os.Geteuid() == 0 {
		return "", false
	}
	info, err := os.Stat(client.Socket())
	return client.Socket(), err == nil && info.Mode().Type() == fs.ModeSocket
}

// useServer returns the socket of the server to use, if there is one.
func (a *app) useServer(f *runFlags) (socket string, ok bool) {
	if f.Set.Changed("server") {
		return f.server, true
	}
	if a.server == nil {
		return "", false
	}
	return a.server()
}

// dial connects to a server, by the path of its socket or a URL.
func dial(ctx context.Context, server string) (*client.Client, error) {
	o := client.Options{Socket: server}
	if strings.HasPrefix(server, "http://") || strings.HasPrefix(server, "https://") {
		o = client.Options{Address: server}
	}
	c, err := client.Dial(ctx, o)
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

// notOnServer are the flags of gaol run that servers do not have.
var notOnServer = []string{"mount", "node-modules", "publish", "save", "store", "launcher", "unix-sockets", "allow-degraded", "audit-denials", "proxy", "proxy-names"}

// runOnServer is run in a sandbox of a server.
func (a *app) runOnServer(ctx context.Context, socket string, p *program, f *runFlags) (err error) {
	for _, name := range notOnServer {
		if f.Set.Changed(name) {
			return report.UsageError("gaol run", fmt.Errorf("--%s is not available on a server", name))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := dial(ctx, socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	sb, err := c.Create(ctx, f.serverOptions())
	if err != nil {
		return adviseServer(err)
	}
	if !f.json {
		report.Notes(a.stderr, f.Notes(sb.Missing(), runtime.DefaultLimits())...)
	}
	streams, interleaved := report.NewStreams(a.stdout, a.stderr, f.passLimit(), cancel), report.NewInterleaved(f.maxOutput)
	var res *runtime.Result
	if f.tty {
		res, err = a.runOnTerminal(ctx, remoteTerminal(sb), p, f)
	} else {
		res, err = a.runProgram(ctx, sb, p, f, streams, interleaved)
	}
	if failed := streams.Err(); failed != nil {
		err = failed // which canceled the run
	}
	if err := errors.Join(err, sb.Close()); err != nil {
		return err
	}
	return a.reportRun(res, f, streams, interleaved)
}

// serverOptions returns the options of a sandbox on a server.
func (f *runFlags) serverOptions() client.CreateOptions {
	o := f.Options()
	o.Limits.Output = 1 // output is passed through
	if f.json {
		o.Limits.Output = f.maxOutput
	}
	return client.CreateOptions{
		Image: o.Image, Snapshot: o.Snapshot, Files: o.Files, Env: o.Env, Cwd: o.Cwd, ReadOnlyRoot: o.ReadOnlyRoot, Hostname: o.Hostname,
		Limits: o.Limits, Permissions: o.Permissions, HostPorts: o.HostPorts, Isolation: f.ServerIsolation(),
	}
}

// remoteTerminal starts programs in a sandbox of a server.
func remoteTerminal(sb *client.Sandbox) spawner {
	return func(ctx context.Context, p *program, o runtime.SpawnOptions) (t *terminalProcess, err error) {
		var proc *client.Process
		if p.command == "" {
			o.Name, o.Format, o.Args = p.Name, p.Format, p.args
			proc, err = sb.SpawnCode(ctx, p.Code, o)
		} else {
			proc, err = sb.Spawn(ctx, p.command, p.args, o)
		}
		if err != nil {
			return nil, adviseCommand(err)
		}
		return &terminalProcess{proc, proc.Stdin, proc.Stdout}, nil
	}
}
