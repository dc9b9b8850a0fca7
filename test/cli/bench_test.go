package cli

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/test/harness"
	"gaol/test/tier"
)

// PATH has runc, but not crun.
func TestBenchIsolations(t *testing.T) {
	tier.Soak(t)
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), "bench", "--isolation", "all", "--only", "run-p50,create-run-close", "-n", "3", "--json")
	cmd.Env = []string{"PATH=" + filepath.Dir(harness.Runc(t))}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var object struct {
		Environment struct{ Sides []string }
		Figures     []struct {
			ID            string
			Values, Ratio map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(stdout.String()), &object); err != nil {
		t.Fatalf("%v: %s", err, &stdout)
	}
	if diff := cmp.Diff([]string{"native", "runc"}, object.Environment.Sides); diff != "" {
		t.Errorf("sides (-want +got):\n%s\n%s", diff, &stderr)
	}
	if len(object.Figures) != 2 {
		t.Errorf("%d figures, want 2", len(object.Figures))
	}
	for _, f := range object.Figures {
		if len(f.Values) != 3 || f.Values["bare"] <= 0 || f.Values["native"] <= 0 || f.Values["runc"] <= 0 || f.Ratio["native"] <= 0 || f.Ratio["runc"] <= 0 {
			t.Errorf("%+v", f)
		}
	}
}
