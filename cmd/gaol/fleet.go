//go:build !noserver

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/fleet/member"
	"gaol/rootfs"
	"gaol/runtime/client"
)

const fleetLong = `Manage a fleet: servers on several machines, of which clients can use any.

The first machine runs gaol serve --fleet, and each other one gaol serve --join with a token of
gaol fleet token. The commands ask the server of this machine, and need root.`

// fleetCommand is gaol fleet.
func (a *app) fleetCommand() *cobra.Command {
	return group("fleet", "Manage the servers of several machines", fleetLong,
		a.fleetNodesCommand(), a.fleetTokenCommand(), a.fleetPushCommand(), a.fleetCACommand(), a.fleetPromoteCommand(),
		a.fleetNodeCommand("drain", "let a machine accept no new work, and move its sandboxes", "Let a machine accept no new work, and move its sandboxes to others. They keep their ids and the files\nof their own folders, and their processes end. Other runs there continue. It is done when gaol\nfleet nodes shows no sandboxes, except those that end with a session or have mounts."),
		a.fleetNodeCommand("undrain", "let a machine accept new work again", "Let a machine accept new work again."),
		a.fleetNodeCommand("remove", "remove a machine for ever", "Remove a machine for ever: its sandboxes end, and the others refuse its certificate. It can join again with a new token."))
}

// fleetAction adds --server to cmd, which sends a request to the fleet's part of a server, and prints the response. Body may be nil.
func fleetAction[T any](cmd *cobra.Command, method string, path func(args []string) string, body func(args []string) ([]byte, error), print func(T) error) *cobra.Command {
	var server string
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		var text []byte
		if body != nil {
			if text, err = body(args); err != nil {
				return err
			}
		}
		var out T
		if err := askFleet(cmd.Context(), server, method, path(args), text, &out); err != nil {
			return err
		}
		return print(out)
	}
	flags.AddServer(cmd, &server, "a server of the fleet, by default the one of this machine")
	return cmd
}

// maxFleetResponse bounds a response in bytes.
const maxFleetResponse = 8 << 20

// askFleet sends a request to a server, and decodes the response.
func askFleet(ctx context.Context, server, method, path string, body []byte, out any) error {
	c, err := client.NewHTTP(serverOptions(cmp.Or(server, client.Socket())))
	if err != nil {
		return err
	}
	defer c.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		return adviseServer(c.Explain(err))
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxFleetResponse))
	if err != nil {
		return err
	}
	if res.StatusCode == http.StatusNotFound && path == nodesPath {
		return errors.New("the server is not one of a fleet: start it with --fleet or --join")
	}
	if res.StatusCode != http.StatusOK {
		var p api.Problem
		if json.Unmarshal(text, &p) != nil {
			return errors.New(res.Status)
		}
		return &p
	}
	return json.Unmarshal(text, out)
}

const nodesPath = "/fleet/v1/nodes"

func (a *app) fleetNodesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "nodes", Short: "list the machines", Long: "List the machines of the fleet, and those that it has lost.",
		Example: "  gaol fleet nodes\n  gaol fleet nodes --json",
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return fleetAction(cmd, http.MethodGet, func([]string) string { return nodesPath }, nil, func(list fleet.NodeList) error {
		lines := []string{"NODE\tSTATE\tADDRESS\tBUSY\tSANDBOXES\tENGINE\tVERSION\tREASON"}
		for _, n := range list.Nodes {
			id := n.ID
			if id == list.Own {
				id += " (this one)"
			}
			has := map[bool]string{true: "yes", false: "no"}[n.Engine]
			line := fmt.Sprintf("%s\t%s\t%s\t%.0f %%\t%d\t%s\t%s\t", id, n.State, n.Address, 100*n.Busy, n.Sandboxes, has, n.Version)
			if n.State == member.Dead {
				line = fmt.Sprintf("%s\t%s\t-\t-\t-\t-\t-\t%s", id, n.State, n.Why)
			}
			lines = append(lines, line)
		}
		return a.printEither(asJSON, list, report.Table(lines))
	})
}

func (a *app) fleetTokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "print how another machine joins", Example: "  gaol fleet token",
		Long: "Print the command by which another machine joins the fleet. Its token is valid for a day.",
	}
	return fleetAction(cmd, http.MethodPost, func([]string) string { return "/fleet/v1/token" }, nil, func(t fleet.NewToken) error {
		return a.print("gaol serve --join " + t.Address + " --join-token " + t.Token + "\n")
	})
}

const promoteLong = `Run the fleet's engine on three machines instead of the first one: on that, whose server must be
asked, and on two others, which also get the fleet's authority. Any of the three may be lost. The
engine is away for some seconds meanwhile. If that fails, the first machine keeps it.

When one of the three is lost, the command on another one of them starts the engine on a fourth
machine instead. The lost one must be dead or removed, or have left: see gaol fleet nodes.`

func (a *app) fleetPromoteCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "promote", Short: "run the engine on three machines", Long: promoteLong, Example: "  gaol fleet promote"}
	return fleetAction(cmd, http.MethodPost, func([]string) string { return "/fleet/v1/promote" }, nil, func(p fleet.Promoted) error {
		return a.print(strings.Join(p.Engines, "\n") + "\n")
	})
}

const pushLong = `Give all machines of the fleet the same settings and tokens, also those that join later. They use
them instead of the files of --config and --tokens, and keep a copy: a removed token stops working
on each machine that reaches the engine within a second. Without files, the machines use their
own again.`

func (a *app) fleetPushCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "push [SETTINGS TOKENS]", Short: "give all machines the same settings and tokens", Long: pushLong,
		Args: cobra.MatchAll(cobra.MaximumNArgs(2), func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return errors.New("want two files: - for none")
			}
			return nil
		}),
		Example: "  gaol fleet push /etc/gaol/server.json /etc/gaol/tokens\n  gaol fleet push - /etc/gaol/tokens",
	}
	read := func(args []string) ([]byte, error) {
		var files fleet.Files
		for i, path := range args {
			if path == "-" {
				continue
			}
			text, err := flags.ReadFile(path, maxPushed, nil)
			if err != nil {
				return nil, err
			}
			*[]*[]byte{&files.Config, &files.Tokens}[i] = text
		}
		return json.Marshal(files)
	}
	return fleetAction(cmd, http.MethodPost, func([]string) string { return "/fleet/v1/push" }, read, func(struct{}) error { return nil })
}

// maxPushed bounds a file in bytes.
const maxPushed = 1 << 20

// fleetNodeCommand does something with one machine.
func (a *app) fleetNodeCommand(name, short, long string) *cobra.Command {
	cmd := &cobra.Command{Use: name + " NODE", Short: short, Long: long, Args: cobra.ExactArgs(1), Example: "  gaol fleet " + name + " k3v5w2qd"}
	return fleetAction(cmd, http.MethodPost, func(args []string) string { return nodesPath + "/" + args[0] + "/" + name }, nil, func(n member.Status) error {
		return a.print(n.ID + " " + string(n.State) + "\n")
	})
}

const caLong = `Back up the authority of the fleet, which gives machines their certificates, and the secret of
its engine. Who has the backup can join the fleet. The commands read the files of this machine.`

// fleetCACommand is gaol fleet ca.
func (a *app) fleetCACommand() *cobra.Command {
	var store string
	dir := func() string { return fleet.Dir(cmp.Or(store, rootfs.DefaultDir)) }
	export := &cobra.Command{
		Use: "export", Short: "print a backup", Long: "Print a backup of the fleet's authority.", Example: "  gaol fleet ca export > fleet.pem",
		RunE: func(*cobra.Command, []string) error {
			text, err := fleet.Export(dir())
			if err != nil {
				return err
			}
			return a.print(string(text))
		},
	}
	restore := &cobra.Command{
		Use: "import FILE", Short: "use a backup on a new machine", Args: cobra.ExactArgs(1), Example: "  gaol fleet ca import fleet.pem",
		Long: "Give a machine that is in no fleet the authority of a backup. Then gaol serve --fleet starts an\nengine there, and the others find it with --join and its address.",
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := flags.ReadFile(args[0], maxBackup, nil)
			if err != nil {
				return err
			}
			return fleet.Import(dir(), text)
		},
	}
	flags.AddStore(export, &store)
	flags.AddStore(restore, &store)
	return group("ca", "back up the fleet's authority", caLong, export, restore)
}

// maxBackup bounds a backup in bytes.
const maxBackup = 64 << 10
