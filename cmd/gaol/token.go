package main

import (
	"github.com/spf13/cobra"

	"gaol/cmd/gaol/server/tenant"
)

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
