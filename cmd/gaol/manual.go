//go:build !noserver

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// manCommand writes the manual pages. It is hidden because packages need it, not users.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write the manual pages to a folder", Hidden: true,
		Long: "Write a manual page for each command to a folder, which must exist.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return writeManual(cmd.Root(), args[0]) },
	}
}

// writeManual writes the pages of a command and of its subcommands.
func writeManual(cmd *cobra.Command, dir string) error {
	name := manualName(cmd)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manualPage(cmd, name)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManual(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualWidth is how wide the lines of flags are: a terminal of 80 columns minus man's indentation.
const manualWidth = 72

// manualPage returns the page of a command. It keeps the lines of the help, which are wrapped, and has tables. It
// has no date, so that the same program writes the same page.
func manualPage(cmd *cobra.Command, name string) string {
	cmd.InitDefaultHelpFlag()
	related := "gaol(1)"
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			related += "\n" + manualName(sub) + "(1)"
		}
	}
	text := fmt.Sprintf(".TH %q 1 \"\" \"gaol %s\" \"gaol's manual\"\n.nh\n", strings.ToUpper(name), version)
	for _, section := range [][2]string{
		{"NAME", name + " - " + cmd.Short},
		{"SYNOPSIS", cmd.UseLine()},
		{"DESCRIPTION", cmp.Or(cmd.Long, cmd.Short)},
		{"OPTIONS", cmd.LocalFlags().FlagUsagesWrapped(manualWidth)},
		{"EXAMPLES", cmd.Example},
		{"SEE ALSO", related},
	} {
		if section[1] != "" {
			text += fmt.Sprintf(".SH %s\n.nf\n%s\n.fi\n", section[0], roff(strings.TrimRight(section[1], "\n")))
		}
	}
	return text
}

// roff escapes text: backslashes, hyphens, which could become typographical ones, and requests at the start of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + text)
	return text[1:]
}
