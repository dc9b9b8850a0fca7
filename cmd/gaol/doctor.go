package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/internal/doctor"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

const doctorLong = `Check whether this machine can run gaol: print the available and the missing features,
with a cure for each, then run a program in a real jail, in containers of runc and
crun, in gVisor, and in a virtual machine.

Every check is real: it enters namespaces and mounts file systems where the host does not
see them. Nothing is changed and nothing is built.

Features with the status optional are not needed, such as OCI runtimes, gVisor and virtual machines for --isolation.

gaol cannot run without root, but most checks work without it.

Exit status: 0 if gaol can run here, 125 if not.`

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	var store string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this machine can run gaol",
		Long:  doctorLong,
		Example: `  sudo gaol doctor
  sudo gaol doctor --json | jq '.checks[] | select(.status != "ok")'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := a.examine(cmd.Context(), store)
			if err != nil {
				return err
			}
			err = a.printEither(asJSON, found, found.Text())
			if err == nil && !found.OK {
				err = report.Advise(errors.New("doctor: gaol can't run here"), "see the cures above")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: ok, and the checks with name, status, detail and cure")
	flags.AddStore(cmd, &store)
	return cmd
}

// examine checks this machine. If ctx ends, the interrupted checks are not findings.
func (a *app) examine(ctx context.Context, store string) (*doctor.Report, error) {
	found := doctor.Examine(ctx, doctor.Options{
		Store: store,
		Program: func(ctx context.Context, isolation string) (string, error) {
			return a.tryProgram(ctx, store, isolation)
		},
	})
	return found, context.Cause(ctx)
}

// tryProgram runs a program in an isolation with all defaults and describes the result. Checks of
// single features cannot show that they work together. The program's report is untrusted,
// so that its length is limited.
func (a *app) tryProgram(ctx context.Context, store, isolation string) (detail string, err error) {
	kind, oci, err := runtime.ParseIsolation(isolation)
	if err != nil {
		return "", err
	}
	sb, err := a.create(ctx, runtime.Options{Store: store, Isolation: kind, OCI: oci})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	res, err := sb.Run(ctx, `__return({answer: 6 * 7, node: process.version})`, runtime.RunOptions{Timeout: 5 * time.Minute}) // in an emulated machine
	if err != nil {
		return "", err
	}
	var got struct {
		Answer int
		Node   string
	}
	if err := res.Decode(&got); err != nil || got.Answer != 42 {
		return "", fmt.Errorf("the program ended with exit code %d, cause %q: %.300s", res.ExitCode, res.Cause, report.OneLine(string(res.Stderr)))
	}
	return fmt.Sprintf("Node %.20s answered 42 in %.0f ms", got.Node, resultjson.Milliseconds(res.Duration)), nil
}
