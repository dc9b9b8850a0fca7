//go:build !noserver

package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/examplecheck"
	"gaol/runtime/snippets"
)

// serverCommands are the commands that need the libraries of the server or of registries, whose initializers and memory take as long
// as a program without them needs to start.
var serverCommands = map[string]func(*app) *cobra.Command{
	"serve": (*app).serveCommand, "mcp": (*app).mcpCommand, "fleet": (*app).fleetCommand, "token": (*app).tokenCommand,
	"snippet": (*app).snippetCommand, "image": (*app).imageCommand, "man": (*app).manCommand,
}

// serverParts are the parts of an app for these commands.
type serverParts struct {
	snippets func(snippets.Options) (examplecheck.Runner, error) // makes the runner of gaol snippet; nil: snippets.New
}

// leaveToServer does nothing: this program has all commands.
func leaveToServer([]string) {}

// self returns the path of gaol, which passes it to gaol-server.
func self() (string, error) {
	if filepath.IsAbs(os.Args[0]) {
		return os.Args[0], nil
	}
	return os.Executable()
}
