package main

import (
	"net"
	"os"

	"github.com/spf13/cobra"

	"gaol/runtime"
)

// agentCommand returns the command that serves a sandbox: on its standard input, or as the first process of a virtual machine.
func (a *app) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agent", Hidden: true, Args: cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs), ValidArgs: []string{"boot"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return runtime.BootAgent()
			}
			conn, err := net.FileConn(os.Stdin)
			if err != nil {
				return err
			}
			return runtime.ServeAgent(conn)
		},
	}
}
