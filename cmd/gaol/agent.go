package main

import (
	"net"
	"os"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

// agentCommand returns the command that serves a sandbox on its standard input.
func (a *app) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			conn, err := net.FileConn(os.Stdin)
			if err != nil {
				return err
			}
			return runtime.ServeAgent(conn)
		},
	}
}
