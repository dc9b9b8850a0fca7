package bench

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"gaol/runtime"
)

var (
	rounds   = flag.Int("gaol.n", defaultRounds, "samples to take of each time")
	store    = flag.String("gaol.store", "", "folder of the image store")
	launcher = flag.String("gaol.launcher", "exec", "exec or zygote")
)

// created are the options of the runtimes that are measured.
func created() (runtime.Options, error) {
	o := runtime.Options{Store: *store}
	for _, l := range []runtime.Launcher{runtime.LauncherExec, runtime.LauncherZygote} {
		if l.String() == *launcher {
			o.Launcher = l
			return o, nil
		}
	}
	return o, fmt.Errorf("there is no launcher %q", *launcher)
}

// reports are printed when all is done: a table in between would break the line
// that go test writes for a benchmark.
var reports []*Report

// BenchmarkGaol takes its own samples: an iteration is a whole measurement, and
// one lasts longer than -benchtime. For benchstat use -count.
func BenchmarkGaol(b *testing.B) {
	create, err := created()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r, err := Measure(b.Context(), Options{Rounds: *rounds, Create: create})
		if err != nil {
			b.Fatal(err)
		}
		reports = append(reports, r)
		r.Metrics(b.ReportMetric)
	}
	b.ReportMetric(0, "ns/op") // the length of a measurement means nothing: leave it out
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, r := range reports {
		fmt.Println()
		if err := r.WriteTable(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := runtime.CloseIdle(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
