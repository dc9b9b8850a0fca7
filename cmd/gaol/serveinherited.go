package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/server"
	"gaol/cmd/gaol/server/daemon"
)

// inherits reports whether the server serves an inherited socket.
func inherits(cmd *cobra.Command) bool { return cmd.Flags().Changed("inherit") }

// completeInherited rejects flags that have no meaning for a server of one inherited socket. Such a server
// logs errors only, unless the user wants more.
func (f *serveFlags) completeInherited(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("log-level") {
		f.logLevel = "error"
	}
	var errs []error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"inherit", "store", "log-format", "log-level"}, f.Name) {
			errs = append(errs, fmt.Errorf("--inherit excludes --%s", f.Name))
		}
	})
	return errors.Join(errs...)
}

// serveInherited serves an inherited socket until its other end is closed, or a signal ends it.
func (a *app) serveInherited(ctx context.Context, f *serveFlags) error {
	err := daemon.RunInherited(ctx, daemon.InheritedOptions{
		FD:          f.inherit,
		Server:      server.SingleOptions{Store: f.Server.Store, Version: versionText(), Log: f.Server.Log},
		TakeSignals: a.signals.release,
	})
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return errStopped
}
