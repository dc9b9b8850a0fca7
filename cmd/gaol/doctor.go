package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gaol/internal/doctor"
	"gaol/runtime"
)

const doctorLong = `Say what this machine offers for jails and what is missing, each with its cure,
then run a program in a real one.

Every check is made for real: namespaces are entered, file systems mounted,
where the host doesn't see them. Nothing is changed and nothing is built.

Without root, gaol can't run; the other checks still tell what they can.

Exit status: 0 if gaol can run here, 125 if not.`

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine offers and what is missing",
		Long:  doctorLong,
		Example: `  sudo gaol doctor
  sudo gaol doctor --json | jq '.checks[] | select(.status != "ok")'`,
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.diagnose(cmd.Context(), dir, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: ok, and the checks with name, status, detail and cure")
	addStoreFlag(cmd, &dir)
	return cmd
}

func (a *app) diagnose(ctx context.Context, dir string, asJSON bool) error {
	report := doctor.Examine(ctx, doctor.Options{
		Store:   dir,
		Program: func(ctx context.Context) (string, error) { return a.tryProgram(ctx, dir) },
	})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := a.printReport(report, asJSON); err != nil {
		return err
	}
	if !report.OK {
		return &advisedError{errors.New("doctor: gaol can't run here"), "see the cures above"}
	}
	return nil
}

func (a *app) printReport(report *doctor.Report, asJSON bool) error {
	if asJSON {
		return a.printJSON(report)
	}
	return a.print(report.Text(isTerminal(a.stdout) && os.Getenv("NO_COLOR") == ""))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// tryProgram runs a program in a jail with every default and says how it went.
func (a *app) tryProgram(ctx context.Context, dir string) (detail string, err error) {
	sb, err := a.create(ctx, runtime.Options{Store: dir})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	res, err := sb.Run(ctx, `__return({answer: 6 * 7, node: process.version})`, runtime.RunOptions{})
	if err != nil {
		return "", err
	}
	var got struct {
		Answer int
		Node   string
	}
	if err := res.Decode(&got); err != nil || got.Answer != 42 {
		return "", fmt.Errorf("the program ended with exit code %d, cause %q: %.300s", res.ExitCode, res.Cause, oneLine(string(res.Stderr)))
	}
	return fmt.Sprintf("Node %.20s answered 42 in %.0f ms", got.Node, milliseconds(res.Duration)), nil
}
