package session

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"gaol/test/server/servertest"
)

// npmVar makes the test fail without the built npm package, as in make npm-test.
const npmVar = "GAOL_TEST_NPM"

// newNPM returns a door that performs steps by the npm package, in one Node process.
func newNPM(t *testing.T, s *servertest.Server) func(step) (reply, func(reply) reply) {
	t.Helper()
	if _, err := os.Stat("../../../cmd/npm/dist/index.mjs"); err != nil && os.Getenv(npmVar) == "" {
		t.Skipf("the npm package is not built, make npm-test builds it: %v", err)
	}
	c := exec.Command(cmp.Or(os.Getenv("GAOL_NODE"), "node"), "doors.mjs", s.Socket)
	var messages bytes.Buffer
	c.Stderr = &messages
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		if err := c.Wait(); err != nil {
			t.Errorf("node: %v: %s", err, messages.String())
		}
	})
	lines := bufio.NewReader(out)
	return func(s step) (got reply, _ func(reply) reply) {
		line, err := json.Marshal(map[string]any{"operation": s.operation, "in": json.RawMessage(s.in), "data": s.data})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = in.Write(append(line, '\n')); err == nil {
			line, err = lines.ReadBytes('\n')
		}
		if err != nil {
			t.Fatalf("%s: %v", s.operation, err)
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %s: %v", s.operation, line, err)
		}
		return got, nil
	}
}
