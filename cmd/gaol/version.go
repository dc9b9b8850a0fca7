package main

import (
	"fmt"
	goruntime "runtime"

	"github.com/spf13/cobra"
)

// version is set by the Makefile with -ldflags -X.
var version = "devel"

func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, as --version does",
		Args:  usageArgs(noArgs),
		RunE:  func(*cobra.Command, []string) error { return a.print("gaol " + versionText() + "\n") },
	}
}
