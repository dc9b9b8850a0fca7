package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	err := run(ctx, os.Stdout, os.Args[1:], runtime.Options{Progress: os.Stderr})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures and prints the report.
func run(ctx context.Context, w io.Writer, args []string, create runtime.Options) error {
	x := &fixtures{}
	o := bench.Options{Figures: x.figures(), Create: create}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	sides := set.String("sides", "exec,zygote", "launchers or isolations to measure side by side")
	only := set.String("only", "", "measure only the figures with these `ids`: "+strings.Join(bench.IDs(o.Figures), ","))
	set.IntVar(&o.Samples, "samples", 200, "samples of each short time; longer ones are measured less often")
	set.BoolVar(&x.quick, "quick", false, fmt.Sprintf("do 1/%d of the work: to see that everything works, not for figures to quote", quickPart))
	asJSON := set.Bool("json", false, "print one JSON object")
	err := set.Parse(args)
	if err == nil && *only != "" {
		o.Figures, err = bench.Choose(o.Figures, strings.Split(*only, ","))
	}
	if err != nil {
		return err
	}
	for side := range strings.SplitSeq(*sides, ",") {
		if side != string(bench.Exec) && side != string(bench.Zygote) {
			if _, _, err := runtime.ParseIsolation(side); err != nil {
				return err
			}
		}
		o.Jailed = append(o.Jailed, bench.Side(side))
	}
	report, err := bench.Measure(ctx, o)
	if err := errors.Join(err, x.removeSnapshot(create.Store), runtime.CloseIdle()); err != nil {
		return err
	}
	return printReport(w, report, *asJSON)
}

// printReport prints a report with the verdicts.
func printReport(w io.Writer, report *bench.Report, asJSON bool) error {
	if !asJSON {
		text := report.Table()
		for _, f := range report.Figures {
			for _, side := range report.Environment.Sides {
				if verdict := note(f, side); verdict != "" {
					text += fmt.Sprintf("%s  %s: %s\n", side, f.Name, verdict)
				}
			}
		}
		_, err := io.WriteString(w, text+"OVER: the bar is not met.\n")
		return err
	}
	object := struct {
		*bench.Report
		Verdicts []verdict `json:"verdicts"`
	}{report, nil}
	for _, f := range report.Figures {
		for side := range f.Values {
			if v, ok := judge(f, side); ok {
				object.Verdicts = append(object.Verdicts, v)
			}
		}
	}
	return json.NewEncoder(w).Encode(object)
}
