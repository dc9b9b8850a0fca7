//go:build !noserver

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/mcpstdio"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/mcpserver"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/client"
)

const mcpLong = `Speak MCP, the Model Context Protocol, on standard input and output, as agents start
their servers. The tools run code and commands in sandboxes, and read and write files there.

gaol mcp is a proxy to gaol serve and needs no privileges. It connects to the socket of
--socket or GAOL_SOCKET, by default /run/gaol/gaol.sock. GAOL_SOCKET may also be a URL such as
https://host:8640; GAOL_TOKEN is its token. Run by root without a server at the default
socket, it serves on its own: its sandboxes end with it, and have the isolation of --isolation.

It ends when standard input ends. Logs go to standard error.`

const mcpExample = `  gaol mcp --config claude-code       print how to add it to a client
  gaol mcp                            what clients start
  gaol mcp --tools sandbox            require the tools sandbox_init, sandbox_command, ...`

// mcpFlags are the flags of gaol mcp.
type mcpFlags struct {
	socket, config, store, isolation string
	sandboxTools                     bool
}

func (a *app) mcpCommand() *cobra.Command {
	f := &mcpFlags{}
	cmd := &cobra.Command{Use: "mcp", Short: "Speak MCP on standard input and output", Long: mcpLong, Example: mcpExample, Args: cobra.MatchAll(cobra.NoArgs, f.check)}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.config != "" {
			return a.mcpConfig(cmd, f)
		}
		return a.mcp(cmd.Context(), f)
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.socket, "socket", "", "`PATH` of the server's socket, or its URL (default: GAOL_SOCKET, then "+client.DefaultSocket+")")
	addTools(cmd, &f.sandboxTools)
	set.StringVar(&f.config, "config", "", "print what to paste into the configuration of `CLIENT`: "+strings.Join(mcpstdio.Clients, ", "))
	flags.Complete(cmd, "config", cobra.FixedCompletions(mcpstdio.Clients, cobra.ShellCompDirectiveNoFileComp))
	flags.AddIsolation(cmd, &f.isolation, "sandboxes")
	flags.AddStore(cmd, &f.store)
	return cmd
}

// check rejects wrong values, and an isolation that a server would not use.
func (f *mcpFlags) check(*cobra.Command, []string) error {
	_, _, err := flags.ParseIsolation(f.isolation)
	if err == nil && f.isolation != "" && f.address() != "" {
		err = errServerIsolation
	}
	return err
}

var errServerIsolation = errors.New("--isolation: the server's settings define its isolation")

// address returns the address of the server that the user has named, or "".
func (f *mcpFlags) address() string { return cmp.Or(f.socket, os.Getenv("GAOL_SOCKET")) }

// addTools defines --tools of gaol serve and gaol mcp.
func addTools(cmd *cobra.Command, sandbox *bool) {
	flags.Choice[bool]{"sandbox": true}.Add(cmd, sandbox, "tools", "additional MCP tools: sandbox for sandbox_init and nine others of package sandboxtools")
}

// mcpConfig prints the configuration of a client.
func (a *app) mcpConfig(cmd *cobra.Command, f *mcpFlags) error {
	path, err := self()
	if err != nil {
		return err
	}
	c := mcpstdio.Command{Path: path, Args: []string{"mcp"}, Env: map[string]string{}}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "config" && flag.Name != "socket" {
			c.Args = append(c.Args, "--"+flag.Name, flag.Value.String())
		}
	})
	if address := f.address(); address != "" {
		c.Env["GAOL_SOCKET"] = address
		if strings.Contains(address, "://") {
			c.Env["GAOL_TOKEN"] = "YOUR TOKEN" // never the real one: it would be in the terminal's history
		}
	}
	text, err := mcpstdio.Config(f.config, c)
	if err != nil {
		return report.UsageError(cmd.CommandPath(), err)
	}
	return a.print(text)
}

// mcp serves one client.
func (a *app) mcp(ctx context.Context, f *mcpFlags) error {
	address := f.address()
	upstream, err := client.NewHTTP(serverOptions(address))
	if err != nil {
		return err
	}
	if strings.Contains(address, "://") && os.Getenv("GAOL_TOKEN") == "" {
		return fmt.Errorf("%s needs a token: set GAOL_TOKEN", address)
	}
	p := mcpstdio.NewProxy(upstream)
	err = p.Check(ctx, f.sandboxTools)
	switch absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED); {
	case absent && address == "" && os.Geteuid() == 0:
		return a.mcpPrivate(ctx, f)
	case err != nil:
		return err
	case f.isolation != "":
		return errServerIsolation
	}
	return p.Serve(ctx, a.stdin, a.stdout)
}

// mcpPrivate serves one client by a service of this process.
func (a *app) mcpPrivate(ctx context.Context, f *mcpFlags) (err error) {
	set, err := settings.Read("", settings.Overrides{Isolation: f.isolation})
	if err != nil {
		return err
	}
	s := service.New(service.Options{Settings: set, Store: f.store, Log: slog.New(slog.NewTextHandler(a.stderr, nil))})
	m := mcpserver.New(mcpserver.Options{Service: s, Version: versionText(), SandboxTools: f.sandboxTools})
	local, stop := server.Local(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.ServeHTTP(w, r.WithContext(tenant.NewContext(r.Context(), &tenant.Tenant{Name: "uid:0", Admin: true})))
	}))
	now, cancel := context.WithCancel(context.Background())
	cancel()
	defer func() {
		err = errors.Join(err, s.Close(now), stop())
		m.Close()
	}()
	return mcpstdio.NewProxy(local).Serve(ctx, a.stdin, a.stdout)
}
