package bench

import (
	"strings"
	"testing"
)

func testReport() *Report {
	return &Report{
		Environment: Environment{Kernel: "6.18", Arch: "amd64", CPUs: 2, Node: "24.21.0", Heap: 16 << 20, Samples: 7},
		Figures: []Figure{
			figure("run-p50", Values{Bare: 25, Exec: 43, Zygote: 10}, nil),
			figure("throughput-4", Values{Bare: 45.25, Exec: 30, Zygote: 452.5}, nil),
			figure("idle-memory", Values{Exec: 0.2, Zygote: 0.21}, nil),
			figure("project-snapshot", Values{Bare: 800, Exec: 960, Zygote: 840}, nil),
			figure("files-snapshot", Values{Bare: 25, Exec: 26, Zygote: 27}, nil),
		},
	}
}

func TestTable(t *testing.T) {
	const want = `figure                                  unit  bare  exec  zygote  exec ratio  zygote ratio           bar  goal
warm run, p50                             ms  25.0  43.0    10.0        1.72          0.40       <= 0.12  0.10  OVER
throughput, clients: 4                runs/s  45.2  30.0     452        0.66          10.0       >= 6.00  8.00    ok
memory of an idle runtime, PSS            MB        0.20    0.21                              <= 1.00 MB  0.30    ok
a project's file work, on a snapshot      ms   800   960     840        1.20          1.05  <= 1.15 both  1.02  OVER
file calls alone, on a snapshot           ms  25.0  26.0    27.0        1.04          1.08
`
	got, notes, _ := strings.Cut(testReport().Table(), "\n\n")
	if got+"\n" != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(notes, "Quick") {
		t.Errorf("a whole benchmark is called quick: %q", notes)
	}
	for _, note := range []string{"OVER: ", "Node 24.21.0, kernel 6.18, amd64, processors: 2, heap of the host: 16 MiB, samples: 7\n"} {
		if !strings.Contains(notes, note) {
			t.Errorf("no %q in %q", note, notes)
		}
	}
}

func TestTableOfOneLauncher(t *testing.T) {
	r := &Report{Figures: []Figure{figure("run-p50", Values{Bare: 25, Exec: 43}, nil)}}
	if head, _, _ := strings.Cut(r.Table(), "\n"); strings.Contains(head, "zygote") {
		t.Errorf("a column for what was not measured: %s", head)
	}
}

func TestTableOfQuickBenchmark(t *testing.T) {
	r := testReport()
	r.Environment.Quick = true
	if table := r.Table(); !strings.Contains(table, "Quick: programs did 1/32 of the work") {
		t.Errorf("the table does not say that less was done:\n%s", table)
	}
}
