package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func testReport() *Report {
	return &Report{
		Environment: Environment{Kernel: "6.18", Arch: "amd64", CPUs: 2, Node: "24.21.0", Heap: 16 << 20, Samples: 7},
		Figures: []Figure{
			againstBare(runMedianID, "run", "ms", Values{Bare: 25, Exec: 43, Zygote: 10}),
			againstBare(clients4ID, "throughput", "runs/s", Values{Bare: 45.25, Exec: 30, Zygote: 452.5}),
			alone(idleMemoryID, "memory", "MB", Values{Exec: 0.2, Zygote: 0.21}),
			againstBare(projectID, "project", "ms", Values{Bare: 800, Exec: 960, Zygote: 840}),
			againstBare(createID, "create", "ms", Values{Bare: 25, Exec: 26, Zygote: 27}),
		},
		Curves: []Curve{
			{"bare <node> & co", Series{20, 30, 40}},
			{"one sample", Series{5}},
			{"none", nil},
			{"no time", Series{0, 1000}},
		},
	}
}

func TestTable(t *testing.T) {
	const want = `figure        unit  bare  exec  zygote  exec ratio  zygote ratio           bar  goal
run             ms  25.0  43.0    10.0        1.72          0.40       <= 0.22  0.12  OVER
throughput  runs/s  45.2  30.0     452        0.66          10.0       >= 4.00  8.00    ok
memory          MB        0.20    0.21                              <= 1.00 MB  0.30    ok
project         ms   800   960     840        1.20          1.05  <= 1.15 both  1.02  OVER
create          ms  25.0  26.0    27.0        1.04          1.08
`
	got, notes, _ := strings.Cut(testReport().Table(), "\n\n")
	if got+"\n" != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, note := range []string{"OVER: ", "Node 24.21.0, kernel 6.18, amd64, processors: 2, heap of the host: 16 MiB, samples: 7\n"} {
		if !strings.Contains(notes, note) {
			t.Errorf("no %q in %q", note, notes)
		}
	}
}

func TestTableOfOneLauncher(t *testing.T) {
	r := &Report{Figures: []Figure{againstBare(runMedianID, "run", "ms", Values{Bare: 25, Exec: 43})}}
	if head, _, _ := strings.Cut(r.Table(), "\n"); strings.Contains(head, "zygote") {
		t.Errorf("a column for what was not measured: %s", head)
	}
}

func TestPicture(t *testing.T) {
	var out bytes.Buffer
	if err := testReport().WritePicture(&out); err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var words []string
	for d := xml.NewDecoder(&out); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			found[token.Name.Local]++
			for _, a := range token.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Errorf("%s: %s=%q", token.Name.Local, a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			words = append(words, string(token))
		}
	}
	if found["svg"] != 1 || found["circle"] != 3*3 {
		t.Errorf("elements: %v, want three dots on each of three curves", found)
	}
	all := strings.Join(words, "\n")
	for _, want := range []string{
		"bare <node> & co: p50 30.0 ms, p95 40.0 ms, p99 40.0 ms", "one sample:", "p99", "\n50 ms\n", "\n1×\n", "prefers-color-scheme: dark",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "none:") {
		t.Error("a curve without samples is in the legend")
	}
}

func TestPictureOfNothing(t *testing.T) {
	if err := new(Report).WritePicture(io.Discard); err == nil {
		t.Error("no samples make a picture")
	}
}
