package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

--picture draws the distributions of the short times, for light and dark pages.

It takes some five minutes and up to 1,000 jails at once. Quote figures from a quiet
machine only: a ratio cancels what slows down all sides alike, and nothing else.`

// benchFlags are the flags of gaol bench.
type benchFlags struct {
	bench.Options
	json    bool
	picture string
}

func (a *app) benchCommand() *cobra.Command {
	f := &benchFlags{Options: bench.Options{Samples: bench.DefaultSamples}}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what jails cost, beside bare node",
		Long:  benchLong,
		Example: `  sudo gaol bench --picture bench.svg
  sudo gaol bench --launcher zygote --samples 50
  sudo gaol bench --only call,calls,normalize
  sudo gaol bench --json | jq '.figures[] | select(.met == false) | .name'`,
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := flags.CheckNotEmpty(cmd.Flags(), "picture", "image", "store")
			if err == nil && f.picture != "" && len(f.Only) > 0 {
				err = errors.New("--picture draws what a whole benchmark measures: leave out --only")
			}
			if err != nil {
				return report.UsageError(cmd.CommandPath(), err)
			}
			return a.bench(cmd.Context(), f)
		},
	}
	f.add(cmd)
	return cmd
}

func (f *benchFlags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.SortFlags = false
	set.BoolVar(&f.json, "json", false, "print one JSON object and nothing else")
	set.StringVar(&f.picture, "picture", "", "draw the distributions into `FILE`, as SVG")
	set.Var(flags.List(&f.Only, "ID", parseFigures), "only", "measure only the figures with these ids, which --json prints: call,normalize")
	set.Var(flags.Launchers(&f.Launchers), "launcher", "exec, zygote, or both side by side")
	set.VarP(flags.Count(&f.Samples), "samples", "n", "samples of each short time; longer ones are measured less often")
	set.BoolVar(&f.Quick, "quick", false, "do less work: to see that everything works, not for figures to quote")
	flags.AddImage(cmd, &f.Create.Image)
	flags.AddStore(cmd, &f.Create.Store)
	flags.Complete(cmd, "only", cobra.FixedCompletions(figureNames(), cobra.ShellCompDirectiveNoFileComp))
	flags.Complete(cmd, "launcher", cobra.FixedCompletions([]string{"exec", "zygote", "both"}, cobra.ShellCompDirectiveNoFileComp))
}

func parseFigures(s string) (ids []bench.ID, err error) {
	for name := range strings.SplitSeq(s, ",") {
		if !slices.Contains(figureNames(), name) {
			return nil, fmt.Errorf("there is no figure %q, but %s", name, strings.Join(figureNames(), ", "))
		}
		ids = append(ids, bench.ID(name))
	}
	return ids, nil
}

func figureNames() (names []string) {
	for _, id := range bench.IDs() {
		names = append(names, string(id))
	}
	return names
}

// bench measures, and writes the picture before it prints the table: when the table
// appears, the picture is complete.
func (a *app) bench(ctx context.Context, f *benchFlags) error {
	picture, err := createPicture(f.picture)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if picture != nil {
		defer func() { _ = os.Remove(picture.Name()) }() // fails if it was renamed
		defer picture.Close()
	}
	f.Progress, f.Create.Progress = a.progress(), a.progress()
	measured, err := a.measure(ctx, f.Options)
	if err != nil {
		return err
	}
	if picture != nil {
		const mode = 0o644 // not CreateTemp's 0o600: a picture is no secret
		err := errors.Join(measured.WritePicture(picture), picture.Chmod(mode), picture.Close())
		if err == nil {
			err = os.Rename(picture.Name(), f.picture)
		}
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
	}
	return a.printEither(f.json, measured, measured.Table())
}

// createPicture creates a temporary file beside the picture called name, or returns nil
// for "". It fails before minutes are spent on a picture that cannot be written, and an
// interrupted benchmark leaves an old picture unchanged.
func createPicture(name string) (*os.File, error) {
	if name == "" {
		return nil, nil
	}
	return os.CreateTemp(filepath.Dir(name), ".gaol-bench-*.svg")
}

// measure is the app.measure of the real command.
func measure(ctx context.Context, o bench.Options) (*bench.Report, error) {
	measured, err := bench.Measure(ctx, o)
	if err := errors.Join(err, runtime.CloseIdle()); err != nil {
		return nil, err
	}
	return measured, nil
}
