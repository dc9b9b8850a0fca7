package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/bench"
	"gaol/rootfs"
	"gaol/runtime"
)

const benchLong = `Measure what jails cost on this machine, beside bare node: the image's own Node,
started on the host with the same program, in the same minutes. All take turns,
so that what else the machine does slows down all of them.

It prints one line for each figure: the medians, if the name says nothing else,
their ratios to bare node's, and, where gaol has set itself a bar for the
launcher zygote, or for both, that bar and whether it is met: "ok", or "OVER" if
not. To miss a bar is no failure: the exit status is 0 whenever all could be
measured.

--json prints one object instead: environment, and figures with id, name, unit,
values and ratio by launcher, against, bar, goal and met; with atLeast, more is
better; with ofValue, the bar is about the zygote's value, not about its ratio;
with both, it is for exec as well.

--picture draws the distributions of the short times, for light and dark pages.

It takes some five minutes and up to 1,000 jails at once. Quote figures from a
quiet machine only: a ratio cancels what slows down all alike, no more.`

// benchFlags are the flags of gaol bench.
type benchFlags struct {
	json, quick bool
	samples     count
	launchers   launchers
	only        figures
	image, dir  string
	picture     string
}

func (a *app) benchCommand() *cobra.Command {
	f := &benchFlags{samples: bench.DefaultSamples}
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
			if err := f.check(cmd); err != nil {
				return usageError(cmd.CommandPath(), err)
			}
			return a.bench(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.json, "json", false, "print one JSON object and nothing else")
	flags.StringVar(&f.picture, "picture", "", "draw the distributions into `FILE`, as SVG")
	flags.Var(&f.only, "only", "measure the figures with these `ID`s alone, as --json tells them: call,normalize")
	flags.Var(&f.launchers, "launcher", "exec, zygote, or both of them side by side")
	flags.VarP(&f.samples, "samples", "n", "samples to take of each short time; what takes long is measured less often")
	flags.BoolVar(&f.quick, "quick", false, "do less where it's much: to see that all works, not for figures to quote")
	flags.StringVar(&f.image, "image", "", "`NAME` or id of the image (default: the default image, built if missing)")
	addStoreFlag(cmd, &f.dir)
	_ = cmd.RegisterFlagCompletionFunc("image", completer(rootfs.Open)) // fails only for a flag that isn't there
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(figureNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("launcher", cobra.FixedCompletions([]string{"exec", "zygote", "both"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check refuses what pflag lets through.
func (f *benchFlags) check(cmd *cobra.Command) error {
	for name, value := range map[string]string{"picture": f.picture, "image": f.image, "store": f.dir} {
		if value == "" && cmd.Flags().Changed(name) {
			return errors.New("--" + name + " is empty")
		}
	}
	if f.picture != "" && len(f.only) > 0 {
		return errors.New("--picture draws what a whole benchmark measures: leave out --only")
	}
	return nil
}

// bench measures, and then writes the picture before it prints: who has read the
// table finds the picture there.
func (a *app) bench(ctx context.Context, f *benchFlags) (failed error) {
	picture, err := newPictureFile(f.picture)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { failed = errors.Join(failed, picture.discard()) }()
	o := bench.Options{
		Samples: int(f.samples), Only: f.only, Launchers: f.launchers, Quick: f.quick,
		Create: runtime.Options{Image: f.image, Store: f.dir},
	}
	if isTerminal(a.stderr) {
		o.Progress, o.Create.Progress = a.stderr, a.stderr
	}
	report, err := a.measure(ctx, o)
	if err != nil {
		return err
	}
	if err := picture.write(report); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if f.json {
		return a.printJSON(report)
	}
	return a.print(report.Table())
}

// measure is the real app.measure.
func measure(ctx context.Context, o bench.Options) (*bench.Report, error) {
	report, err := bench.Measure(ctx, o)
	if err := errors.Join(err, runtime.CloseIdle()); err != nil {
		return nil, err
	}
	return report, nil
}

// pictureFile is opened before minutes are spent on what could not be written,
// under another name: an interrupted benchmark leaves an old picture as it was.
// A nil one is no picture.
type pictureFile struct {
	name string
	temp *os.File // nil once it's written
}

func newPictureFile(name string) (*pictureFile, error) {
	if name == "" {
		return nil, nil
	}
	temp, err := os.CreateTemp(filepath.Dir(name), ".gaol-bench-*.svg")
	if err != nil {
		return nil, err
	}
	return &pictureFile{name, temp}, nil
}

func (p *pictureFile) write(report *bench.Report) error {
	if p == nil {
		return nil
	}
	const mode = 0o644 // CreateTemp's is for secrets
	if err := errors.Join(report.WritePicture(p.temp), p.temp.Chmod(mode), p.temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(p.temp.Name(), p.name); err != nil {
		return err
	}
	p.temp = nil
	return nil
}

func (p *pictureFile) discard() error {
	if p == nil || p.temp == nil {
		return nil
	}
	_ = p.temp.Close() // of no use any more, and perhaps closed
	return os.Remove(p.temp.Name())
}
