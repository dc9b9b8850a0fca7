//go:build noserver

package main

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/report"
	"gaol/internal/ociruntime"
)

// serverCommands are in another program, gaol-server.
var serverCommands map[string]func(*app) *cobra.Command

type serverParts struct{}

// leaveToServer executes gaol-server, which has all commands, unless the arguments begin with a command of this program. It returns
// only in that case.
func leaveToServer(args []string) {
	if len(args) > 1 && commands[args[1]] != nil {
		return
	}
	program, err := ociruntime.Beside("gaol-server")
	if err == nil {
		var own string
		if own, err = os.Executable(); err == nil {
			err = unix.Exec(program, append([]string{own}, args[1:]...), os.Environ())
		}
	}
	report.Print(os.Stderr, err)
	os.Exit(report.ExitFailure)
}
