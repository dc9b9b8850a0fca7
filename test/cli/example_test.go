package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/runtime"
	"gaol/test/harness"
)

// The example agent prints the conversation in testdata/agent.txt.
func TestExampleAgent(t *testing.T) {
	options, err := json.Marshal(harness.Options(runtime.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command("go", "run", "gaol/test/example/agent", string(options)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	want, err := os.ReadFile("testdata/agent.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
