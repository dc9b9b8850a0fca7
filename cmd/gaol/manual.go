package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"gaol/cmd/gaol/report"
)

// manCommand writes the manual pages. It is hidden because packages need it, not users.
func (a *app) manCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages to a folder", Hidden: true,
		Long: "Write a manual page for each command to a folder, which must exist. SOURCE_DATE_EPOCH sets their date.",
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
			return report.UsageError(cmd.CommandPath(), errors.Join(fmt.Errorf("%q: want a folder", args[0]), err))
		}
		root := cmd.Root()
		forManual(root)
		source := "gaol " + strings.Fields(versionText())[0]
		return doc.GenManTree(root, &doc.GenManHeader{Title: "GAOL", Section: "1", Source: source, Manual: "gaol's manual"}, args[0])
	}
	return cmd
}

// forManual removes what depends on the time of the build.
func forManual(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	for _, sub := range cmd.Commands() {
		forManual(sub)
	}
}
