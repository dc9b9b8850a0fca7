package bench

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var rounds = flag.Int("gaol.n", defaultRounds, "samples to take of each time")

// reports are printed when all is done: a table in between would break the line
// that go test writes for a benchmark.
var reports []*Report

// BenchmarkGaol takes its own samples: an iteration is a whole measurement, and
// one lasts longer than -benchtime. For benchstat use -count.
func BenchmarkGaol(b *testing.B) {
	for b.Loop() {
		r, err := Measure(b.Context(), Options{Rounds: *rounds})
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
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
