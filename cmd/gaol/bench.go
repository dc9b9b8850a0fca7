package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gaol/cmd/gaol/bench"
	"gaol/cmd/gaol/flags"
	"gaol/internal/ociruntime"
)

const benchLong = `Measure what jails cost on this machine, beside bare node: the image's own Node,
started on the host with the same program, in the same minutes. Bare node and the
launchers take turns, so that other load on the machine slows down all of them.

Each figure is printed on one line for each launcher: its value, which is a median unless
its name tells otherwise, and the ratio to bare node.

--isolation measures isolations instead of launchers, each with its fastest launcher. "all" means
native, and runc, crun and gvisor if they are installed.

Quote figures from a quiet machine only: a ratio cancels what slows down all sides alike, and
nothing else.`

func (a *app) benchCommand() *cobra.Command {
	o := bench.Options{Samples: 200, Figures: bench.Figures()}
	const both = "both"
	var isolations, launcher = "", both
	var only []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what jails cost, beside bare node",
		Long:  benchLong,
		Example: `  sudo gaol bench --launcher zygote --samples 50
  sudo gaol bench --only create-run-close
  sudo gaol bench --isolation native,runc,gvisor
  sudo gaol bench --json | jq '.figures[] | {name, ratio}'`,
		Args: cobra.MatchAll(cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.Jailed = []bench.Side{bench.Side(launcher)}; launcher == both {
				o.Jailed = []bench.Side{bench.Exec, bench.Zygote}
			}
			if isolations != "" {
				err = checkIsolations(cmd.Flags(), &o, isolations)
			}
			if err == nil && only != nil {
				o.Figures, err = bench.Choose(o.Figures, only)
			}
			return err
		}),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
	set.BoolVar(&asJSON, "json", false, "print one JSON object: environment, and figures with id, name, unit, values and ratio by launcher, and against")
	ids := bench.IDs(o.Figures)
	set.StringSliceVar(&only, "only", nil, "measure only the figures with these `ids`: "+strings.Join(ids, ","))
	flags.Choice[string]{"exec": string(bench.Exec), "zygote": string(bench.Zygote), both: both}.Add(cmd, &launcher, "launcher", "exec, zygote, or both side by side")
	set.Var(flags.Text(&isolations), "isolation", "`NAMES` of isolations to compare instead of launchers: all, or some like native,gvisor,runc,crun,oci=/path")
	set.VarP(flags.Count(&o.Samples), "samples", "n", "samples of each short time; longer ones are measured less often")
	flags.AddImage(cmd, &o.Create.Image)
	flags.AddStore(cmd, &o.Create.Store)
	flags.Complete(cmd, "only", cobra.FixedCompletions(ids, cobra.ShellCompDirectiveNoFileComp))
	flags.Complete(cmd, "isolation", cobra.FixedCompletions([]string{"all", "native", "gvisor", "runc", "crun", "oci=/"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// checkIsolations chooses isolations to measure, by their names or "all".
func checkIsolations(set *pflag.FlagSet, o *bench.Options, list string) error {
	if set.Changed("launcher") {
		return errors.New("--isolation excludes --launcher: each isolation has its fastest")
	}
	if list == "all" {
		list = "native"
		for _, name := range []string{ociruntime.Runc, ociruntime.Crun} {
			if _, err := ociruntime.Find(name); err == nil {
				list += "," + name
			}
		}
		if _, err := ociruntime.FindRunsc(); err == nil {
			list += ",gvisor"
		}
	}
	o.Jailed = nil
	for name := range strings.SplitSeq(list, ",") {
		if _, _, err := flags.ParseIsolation(cmp.Or(name, "no name")); err != nil {
			return err
		}
		if slices.Contains(o.Jailed, bench.Side(name)) {
			return fmt.Errorf("--isolation names %s twice", name)
		}
		o.Jailed = append(o.Jailed, bench.Side(name))
	}
	return nil
}
