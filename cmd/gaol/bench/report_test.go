package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testReport() *Report {
	r := &Report{
		Environment: Environment{Kernel: "6.18", Arch: "amd64", CPUs: 2, Node: "24.21.0", Samples: 7, Sides: []Side{"native", "runc"}},
	}
	list, err := Choose(Figures(), []string{"create-run-close", "run-p50"})
	if err != nil {
		panic(err)
	}
	for _, f := range list {
		r.Figures = append(r.Figures, f.Measured(Samples{Bare: {25}, "native": {5}, "runc": {1234}}, nil))
	}
	r.Figures[1].Values = Values{"runc": 3}
	return r
}

func TestTable(t *testing.T) {
	const want = `side     figure                 unit   value    ratio
bare     warm run, p50          ms       25.0
native   warm run, p50          ms       5.00    0.20
runc     warm run, p50          ms       1234    49.4
runc     Create + Run + Close   ms       3.00    49.4
`
	got, notes, _ := strings.Cut(testReport().Table(), "\n\n")
	var lines strings.Builder
	for line := range strings.Lines(got + "\n") {
		lines.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if diff := cmp.Diff(want, lines.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const conditions = "Node 24.21.0, kernel 6.18, amd64, processors: 2, samples: 7\n"
	if !strings.HasSuffix(notes, conditions) {
		t.Errorf("no %q in %q", conditions, notes)
	}
}

func TestReportJSON(t *testing.T) {
	got, err := json.Marshal(testReport())
	for _, want := range []string{
		`"sides":["native","runc"]`,
		`{"id":"run-p50","name":"warm run, p50","unit":"ms","values":{"bare":25,"native":5,"runc":1234},"ratio":{"native":0.2,"runc":49.36},"against":"bare node"}`,
	} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%v: no %s in %s", err, want, got)
		}
	}
}

func TestChoose(t *testing.T) {
	if want := []string{"run-p50", "run-p99", "throughput-4", "create-run-close"}; !slices.Equal(IDs(Figures()), want) {
		t.Errorf("got %q, want %q", IDs(Figures()), want)
	}
	if _, err := Choose(Figures(), []string{"fast"}); err == nil {
		t.Error("an unknown figure is accepted")
	}
}
