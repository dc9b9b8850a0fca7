//go:build !noserver

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server/daemon"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/doctor"
	"gaol/rootfs"
	"gaol/runtime/client"
)

const serveLong = `Serve an HTTP API for programs in any language, on a unix socket.

Users in the socket's group can run code in sandboxes. That does not make them root: see
docs/server.md. docs/settings.md describes the file of --config.

Callers of --listen need a token: see gaol token. Unless the address is a loopback one, TCP
needs --tls-cert and --tls-key, or --insecure.

SIGTERM and SIGINT stop the server: it accepts nothing new, and ends what still runs after
the time in the file, or with a second signal. SIGHUP reads the files again, and opens
the audit log again; if one of them is invalid, nothing changes.

Under systemd, which --print-unit prints units for, the server uses the sockets that systemd
passes instead of --socket.

--inherit serves one client that root trusts: the program that has started the server, at the
other end of a connected unix socket. It may mount any folder, and no quota bounds it. The
server ends with the connection, or by SIGTERM.`

const serveExample = `  gaol serve
  gaol serve --group developers --config /etc/gaol/server.json
  gaol serve --listen 127.0.0.1:8640 --tokens /etc/gaol/tokens
  gaol serve --config /etc/gaol/server.json --print-unit=service
  curl --unix-socket /run/gaol/gaol.sock http://gaol/v1/run --json '{"code": "console.log(1)"}'`

// serveFlags are the flags of gaol serve.
type serveFlags struct {
	daemon.Options
	logJSON   bool
	logLevel  slog.Level
	printUnit string
	inherit   int
}

func (a *app) serveCommand() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{Use: "serve", Short: "Serve an HTTP API for sandboxes", Long: serveLong, Example: serveExample}
	cmd.Args = cobra.MatchAll(cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return f.complete(cmd, a.stderr) })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.printUnit != "" {
			return a.printUnit(cmd, f)
		}
		return a.serve(cmd, f)
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.Socket, "socket", client.DefaultSocket, "`PATH` of the unix socket; empty for none")
	set.StringVar(&f.Group, "group", "gaol", "`GROUP` of users that may connect to it; without such a group only root may")
	set.StringVar(&f.Listen, "listen", "", "also serve TCP on `ADDR`, such as 127.0.0.1:8640")
	set.StringVar(&f.Tokens, "tokens", "", "`FILE` with the tokens that TCP needs")
	set.StringVar(&f.Cert, "tls-cert", "", "`FILE` with the certificate for TCP")
	set.StringVar(&f.Key, "tls-key", "", "`FILE` with its key")
	set.BoolVar(&f.Insecure, "insecure", false, "serve TCP without TLS although others could read the tokens")
	set.IntVar(&f.inherit, "inherit", -1, "serve only the program at the other end of the inherited socket with this descriptor `NUMBER`, and end with it")
	set.StringVar(&f.Config, "config", "", "`FILE` of JSON with the server's settings")
	set.StringVar(&f.Overrides.PublicURL, "public-url", "", "`URL` by which people reach the server, for links to its page")
	set.Var(flags.Folder(&f.Overrides.NodeModules), "node-modules", "`FOLDER` with the packages that snippets may import")
	set.BoolVar(&f.Overrides.NoPlayground, "no-playground", false, "do not serve the page at /")
	flags.Choice[bool]{"text": false, "json": true}.Add(cmd, &f.logJSON, "log-format", "format of the server's log on standard error: text or json")
	flags.Choice[slog.Level]{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}.Add(
		cmd, &f.logLevel, "log-level", "the least level that is logged: debug, with each request; info, warn or error")
	flags.Choice[string]{"service": "service", "socket": "socket", "all": "all"}.Add(
		cmd, &f.printUnit, "print-unit", "print systemd units that start the server with the other flags, and exit: service, socket or all")
	set.Lookup("print-unit").NoOptDefVal = "all"
	set.BoolVar(&f.Fleet.Found, "fleet", false, "connect the servers of several machines, of which this is the first: see gaol fleet")
	set.IntVar(&f.Fleet.Engines, "engines", 1, "`NUMBER` of machines with the fleet's engine: 1, or 3, as gaol fleet promote when three machines are live")
	set.StringVar(&f.Fleet.Join, "join", "", "`ADDR` of a machine of a fleet, which this one joins: host:port")
	set.StringVar(&f.Fleet.Token, "join-token", "", "`TOKEN` of gaol fleet token, or @FILE with it; a machine needs it once")
	set.StringVar(&f.Fleet.External.URLs, "fleet-engine", "", "`URLS` of the NATS servers of a fleet, nats://[USER:PASSWORD@]HOST:PORT or tls://…, separated by commas, or @FILE with them; the machines do not join each other")
	set.StringVar(&f.Fleet.External.CA, "fleet-engine-ca", "", "`FILE` with the authority of their certificates, in PEM, by which TLS is required")
	set.StringVar(&f.Fleet.Authority, "fleet-authority", "", "`FILE` with the certificate and key of the authority of the machines with --fleet-engine, in PEM: see docs/kubernetes.md")
	set.StringVar(&f.Fleet.Address, "fleet-address", "", "`ADDR` on which the others reach this machine: host:port (default: an address of the machine, port "+fleet.DefaultPort+")")
	addTools(cmd, &f.Server.SandboxTools)
	flags.AddIsolation(cmd, &f.Overrides.Isolation, "sandboxes whose request names no other")
	flags.AddStore(cmd, &f.Server.Store)
	return cmd
}

// complete checks the flags, and opens the log.
func (f *serveFlags) complete(cmd *cobra.Command, stderr io.Writer) error {
	_, _, err := flags.ParseIsolation(f.Overrides.Isolation)
	failed := errors.Join(f.completeFleet(), f.check(), err)
	if inherits(cmd) {
		failed = f.completeInherited(cmd)
	}
	f.Server.Log = f.logger(stderr)
	return failed
}

// completeFleet completes the options of a machine of a fleet.
func (f *serveFlags) completeFleet() error {
	f.Fleet.Dir = fleet.Dir(cmp.Or(f.Server.Store, rootfs.DefaultDir))
	return errors.Join(readSecret(&f.Fleet.Token, "GAOL_JOIN_TOKEN"), readSecret(&f.Fleet.External.URLs, "GAOL_FLEET_ENGINE"))
}

// readSecret replaces an empty value by that of a variable, and @FILE by the content of the file.
func readSecret(value *string, variable string) error {
	*value = cmp.Or(*value, os.Getenv(variable))
	name, isFile := strings.CutPrefix(*value, "@")
	if !isFile {
		return nil
	}
	text, err := flags.ReadFile(name, 1<<12, nil)
	*value = strings.TrimSpace(string(text))
	return err
}

// check rejects flags that contradict each other.
func (f *serveFlags) check() error {
	switch {
	case f.printUnit != "" && !filepath.IsAbs(f.Socket):
		return fmt.Errorf("--print-unit: --socket %q: want an absolute path", f.Socket)
	case f.Socket == "" && f.Listen == "":
		return errors.New("nothing to listen on: give --socket or --listen")
	case f.Listen == "" && (f.Tokens != "" || f.Cert != "" || f.Key != "" || f.Insecure):
		return errors.New("--tokens, --tls-cert, --tls-key and --insecure need --listen")
	case f.Fleet.Found && f.Fleet.Join != "":
		return errors.New("--fleet and --join exclude each other: the first machine has --fleet, and the others --join")
	case f.Fleet.External.URLs != "" && (f.Fleet.Found || f.Fleet.Join != ""):
		return errors.New("--fleet-engine excludes --fleet and --join: each machine has the same --fleet-engine and --fleet-authority")
	case (f.Fleet.External.URLs == "") != (f.Fleet.Authority == "") || f.Fleet.External.CA != "" && f.Fleet.Authority == "":
		return errors.New("--fleet-engine, with or without --fleet-engine-ca, and --fleet-authority need each other")
	case !f.Fleet.InFleet() && (f.Fleet.Token != "" || f.Fleet.Address != ""):
		return errors.New("--join-token and --fleet-address need --fleet, --join or --fleet-engine")
	case f.Fleet.Engines != 1 && (f.Fleet.Engines != 3 || !f.Fleet.Found):
		return errors.New("--engines: want 1, or 3 with --fleet")
	case (f.Cert == "") != (f.Key == ""):
		return errors.New("--tls-cert and --tls-key need each other")
	}
	return nil
}

// logger returns the server's log.
func (f *serveFlags) logger(to io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: f.logLevel}
	if f.logJSON {
		return slog.New(slog.NewJSONHandler(to, o))
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// serve serves until a signal ends it, or an inherited socket's other end is closed.
func (a *app) serve(cmd *cobra.Command, f *serveFlags) (err error) {
	o := f.Options
	o.Server.Version = versionText()
	a.signals.release()
	if inherits(cmd) {
		err = daemon.RunInherited(cmd.Context(), f.inherit, o.Server)
	} else {
		o.Check = func(ctx context.Context, images []string) error { return a.checkMachine(ctx, o.Server.Store, images) }
		err = daemon.Run(cmd.Context(), o)
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return errStopped
}

// checkMachine returns what keeps this machine from running programs, with the cures. If the settings
// name images, the default one may be missing.
func (a *app) checkMachine(ctx context.Context, store string, images []string) error {
	found, err := a.examine(ctx, store)
	if err != nil {
		return err
	}
	var cures []string
	for _, c := range found.Checks {
		isImage := c.Name == "default image" && (len(images) == 0 || slices.Contains(images, "default"))
		if c.Status == doctor.Missing || c.Status == doctor.Degraded && isImage {
			cures = append(cures, fmt.Sprintf("%s: %s: %s", c.Name, c.Detail, c.Cure))
		}
	}
	if len(cures) == 0 {
		return nil
	}
	return report.Advise(errors.New("this machine cannot run programs: "+strings.Join(cures, "; ")), "gaol doctor shows all checks")
}

// printUnit prints systemd units. The service is started with the flags that were given.
func (a *app) printUnit(cmd *cobra.Command, f *serveFlags) error {
	program, err := self()
	if err != nil {
		return err
	}
	command := []string{program, "serve"}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"print-unit", "socket", "group"}, f.Name) { // those are in the unit of the socket
			command = append(command, "--"+f.Name+"="+f.Value.String())
		}
	})
	service, socket := daemon.ServiceUnit(command...), daemon.SocketUnit(f.Socket, f.Group)
	all := "# /etc/systemd/system/gaol.service\n" + service + "\n# /etc/systemd/system/gaol.socket\n" + socket
	return a.print(map[string]string{"service": service, "socket": socket, "all": all}[f.printUnit])
}

// inherits reports whether the server serves an inherited socket.
func inherits(cmd *cobra.Command) bool { return cmd.Flags().Changed("inherit") }

// completeInherited rejects flags that have no meaning for a server of one inherited socket. Such a server
// logs errors only, unless the user wants more.
func (f *serveFlags) completeInherited(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("log-level") {
		f.logLevel = slog.LevelError
	}
	var errs []error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"inherit", "store", "log-format", "log-level"}, f.Name) {
			errs = append(errs, fmt.Errorf("--inherit excludes --%s", f.Name))
		}
	})
	return errors.Join(errs...)
}

const tokenLong = `Create the token of a caller of gaol serve by TCP.

The token is printed once. The file gets a line with its name, its SHA-256, and the word
admin if the caller may read the metrics. A running server reads the file again after
systemctl reload gaol, or SIGHUP.`

// tokenCommand is gaol token.
func (a *app) tokenCommand() *cobra.Command {
	var path string
	var admin bool
	create := &cobra.Command{
		Use: "create NAME", Short: "create a token", Long: tokenLong, Args: cobra.ExactArgs(1),
		Example: "  gaol token create ci\n  gaol token create --admin prometheus",
		RunE: func(_ *cobra.Command, args []string) error {
			secret, err := tenant.CreateToken(path, args[0], admin)
			if err != nil {
				return err
			}
			return a.print(secret + "\n")
		},
	}
	create.Flags().StringVar(&path, "tokens", "/etc/gaol/tokens", "the `FILE` of gaol serve --tokens")
	create.Flags().BoolVar(&admin, "admin", false, "let callers with the token read the metrics")
	return group("token", "manage the tokens of a server", "Manage the tokens of callers of gaol serve by TCP.", create)
}
