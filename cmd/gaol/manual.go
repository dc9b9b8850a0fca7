package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
		date := time.Now()
		if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
			n, err := strconv.ParseInt(epoch, 10, 64)
			if err != nil {
				return fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a valid number of seconds", epoch)
			}
			date = time.Unix(n, 0).UTC()
		}
		return writeManual(cmd.Root(), args[0], date.Format("Jan 2006"))
	}
	return cmd
}

// writeManual writes the pages of a command and of those below it.
func writeManual(cmd *cobra.Command, dir, date string) error {
	name := manualName(cmd)
	if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(manualPage(cmd, name, date)), 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManual(sub, dir, date); err != nil {
				return err
			}
		}
	}
	return nil
}

func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualWidth is how wide the lines of flags are: a terminal of 80 columns minus man's indentation.
const manualWidth = 72

// manualPage returns the page of a command. It keeps the lines of the help, which are wrapped, and has tables.
func manualPage(cmd *cobra.Command, name, date string) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 %q \"gaol %s\" \"gaol's manual\"\n.nh\n", strings.ToUpper(name), date, version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", name, roff(cmd.Short))
	var related []string
	if cmd.HasParent() {
		related = append(related, manualName(cmd.Parent())+"(1)")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			related = append(related, manualName(sub)+"(1)")
		}
	}
	for _, section := range []struct{ title, text string }{
		{"SYNOPSIS", cmd.UseLine()},
		{"DESCRIPTION", cmp.Or(cmd.Long, cmd.Short)},
		{"OPTIONS", cmd.LocalFlags().FlagUsagesWrapped(manualWidth)},
		{"EXAMPLES", cmd.Example},
		{"SEE ALSO", strings.Join(related, "\n")},
	} {
		if section.text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", section.title, roff(strings.TrimRight(section.text, "\n")))
		}
	}
	return b.String()
}

// roff escapes text: backslashes, hyphens, which could become typographical ones, and requests at the start of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + text)
	return text[1:]
}
