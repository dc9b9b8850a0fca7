package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/bench"
	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

const benchLong = `Measure what jails cost on this machine, beside bare node: the image's own Node,
started on the host with the same program, in the same minutes. Bare node and the
launchers take turns, so that other load on the machine slows down all of them.

Each figure is printed on one line: its value for each launcher, which is a median unless
the name says otherwise, the ratios to bare node, and, if gaol has set a bar for the
launcher zygote, or for both, that bar and whether it is met: "ok" or "OVER". Missing a bar
is no failure: the exit status is 0 if everything could be measured.

--json prints one object instead: environment, and figures with id, name, unit, values
and ratio by launcher, against, bar, goal and met. With atLeast, more is better; with
ofValue, the bar is for the zygote's value and not for its ratio; with both, it is for exec
as well.

It takes some five minutes and up to 1,000 jails at once. Quote figures from a quiet
machine only: a ratio cancels what slows down all sides alike, and nothing else.`

func (a *app) benchCommand() *cobra.Command {
	launchers := map[string][]bench.Side{"exec": {bench.Exec}, "zygote": {bench.Zygote}, "both": {bench.Exec, bench.Zygote}}
	o := bench.Options{Samples: 200, Jailed: launchers["both"]}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what jails cost, beside bare node",
		Long:  benchLong,
		Example: `  sudo gaol bench --launcher zygote --samples 50
  sudo gaol bench --only call,calls,normalize
  sudo gaol bench --json | jq '.figures[] | select(.met == false) | .name'`,
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.CheckNotEmpty(cmd.Flags(), "image", "store"); err != nil {
				return report.UsageError(cmd.CommandPath(), err)
			}
			o.Create.Progress = a.progress()
			measured, err := a.measure(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.printEither(asJSON, measured, measured.Table())
		},
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.BoolVar(&asJSON, "json", false, "print one JSON object and nothing else")
	set.Var(flags.List(&o.Only, "ID", parseFigures), "only", "measure only the figures with these ids, which --json prints: call,normalize")
	set.Var(flags.Choice(&o.Jailed, "NAME", "both", "want exec, zygote or both", launchers), "launcher", "exec, zygote, or both side by side")
	set.VarP(flags.Count(&o.Samples), "samples", "n", "samples of each short time; longer ones are measured less often")
	set.BoolVar(&o.Quick, "quick", false, "do less work: to see that everything works, not for figures to quote")
	flags.AddImage(cmd, &o.Create.Image)
	flags.AddStore(cmd, &o.Create.Store)
	flags.Complete(cmd, "only", cobra.FixedCompletions(bench.IDs(), cobra.ShellCompDirectiveNoFileComp))
	flags.Complete(cmd, "launcher", cobra.FixedCompletions([]string{"exec", "zygote", "both"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func parseFigures(s string) ([]string, error) {
	ids := strings.Split(s, ",")
	for _, id := range ids {
		if !slices.Contains(bench.IDs(), id) {
			return nil, fmt.Errorf("there is no figure %q, but %s", id, strings.Join(bench.IDs(), ", "))
		}
	}
	return ids, nil
}

// measure is the app.measure of the real command.
func measure(ctx context.Context, o bench.Options) (*bench.Report, error) {
	measured, err := bench.Measure(ctx, o)
	if err := errors.Join(err, runtime.CloseIdle()); err != nil {
		return nil, err
	}
	return measured, nil
}
