package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func isolationReport() *Report {
	r := &Report{
		Environment: Environment{Kernel: "6.18", Arch: "amd64", CPUs: 2, Node: "24.21.0", Heap: 16 << 20, Samples: 7, Isolations: []Side{"native", "runc"}},
		LeftOut:     []LeftOut{{"crun", "no such program"}},
	}
	for _, f := range (Options{Isolations: r.Environment.Isolations, Only: []string{"run-p50", "throughput-4", "create-run-close"}}).figures() {
		f = f.measured(Samples{Bare: {25}, "native": {5}, "runc": {75}}, nil)
		r.Figures = append(r.Figures, f)
	}
	return r
}

func TestIsolationTable(t *testing.T) {
	const want = `isolation  figure                    unit  value  ratio      bar
bare       warm run, p50               ms   25.0
bare       throughput, clients: 4  runs/s   25.0
bare       Create + Run + Close        ms   25.0
native     warm run, p50               ms   5.00   0.20
native     throughput, clients: 4  runs/s   5.00   0.20
native     Create + Run + Close        ms   5.00   0.20
runc       warm run, p50               ms   75.0   3.00  <= 2.20  OVER
runc       throughput, clients: 4  runs/s   75.0   3.00
runc       Create + Run + Close        ms   75.0   3.00  <= 4.00    ok
`
	got, notes, _ := strings.Cut(isolationReport().Table(), "\n\n")
	if diff := cmp.Diff(want, got+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, note := range []string{"OVER: ", "Node 24.21.0, kernel 6.18, amd64, processors: 2, heap of the host: 16 MiB, samples: 7\n"} {
		if !strings.Contains(notes, note) {
			t.Errorf("no %q in %q", note, notes)
		}
	}
}

func TestIsolationJSON(t *testing.T) {
	got, err := json.Marshal(isolationReport())
	for _, want := range []string{
		`"isolations":["native","runc"]`,
		`"leftOut":[{"isolation":"crun","reason":"no such program"}]`,
		`{"id":"run-p50","name":"warm run, p50","unit":"ms","values":{"bare":25,"native":5,"runc":75},"ratio":{"native":0.2,"runc":3},"against":"bare node","bar":2.2,"for":"runc","met":false}`,
	} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%v: no %s in %s", err, want, got)
		}
	}
}

// Without runc its bars are neither met nor missed, although native would meet them.
func TestIsolationBarIsForRunc(t *testing.T) {
	for _, f := range (Options{Isolations: []Side{"native"}}).figures() {
		if f = f.measured(Samples{Bare: {25}, "native": {5}}, nil); f.Met != nil {
			t.Errorf("%s: the bar is met: %v", f.ID, *f.Met)
		}
	}
}

// Each figure with a bar exists, and the launchers keep their own bars.
func TestFiguresOfIsolations(t *testing.T) {
	if diff := cmp.Diff([]string{"run-p50", "run-p99", "throughput-4", "create-run-close"}, IsolationIDs()); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	all := Options{}.figures()
	if len(all) != len(IDs()) || slices.ContainsFunc(all, func(f Figure) bool { return f.Bar != nil && f.For != "" }) {
		t.Errorf("figures of launchers: %+v", all)
	}
}
