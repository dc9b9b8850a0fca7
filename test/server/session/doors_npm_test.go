package session

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"gaol/cmd/gaol/server/settings"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// npmVar makes the test fail without the built npm package, as in make npm-test.
const npmVar = "GAOL_TEST_NPM"

// needNPM skips a test without the built npm package.
func needNPM(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../../../cmd/npm/dist/index.mjs"); err != nil && os.Getenv(npmVar) == "" {
		t.Skipf("the npm package is not built, make npm-test builds it: %v", err)
	}
}

// node is the program of Node.
func node() string { return cmp.Or(os.Getenv("GAOL_NODE"), "node") }

// newNPM returns a door that performs steps by the npm package, in one Node process.
func newNPM(t *testing.T, s *servertest.Server) func(step) (reply, func(reply) reply) {
	t.Helper()
	needNPM(t)
	c := exec.Command(node(), "doors.mjs", s.Socket)
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

// TestNPMInFleet: the tests of the npm package pass on a node of a fleet that forwards their requests. Those left out start servers themselves.
func TestNPMInFleet(t *testing.T) {
	if !servertest.IsFleet() {
		t.Skip("make npm-test runs these tests without a fleet")
	}
	needNPM(t)
	s := servertest.Start(t, servertest.Options{Settings: func(s *settings.Settings) { *s = *settings.Trusted() }})
	c := exec.Command(node(), "scripts/test.mjs", "ai", "evaluate", "files", "functions", "names", "runs", "snippets", "tools", "noderuntime", "-examples", "-lifetime")
	c.Dir, c.Env = "../../../cmd/npm", append(os.Environ(), "GAOL_SOCKET="+s.Socket, "GAOL_BIN="+harness.Gaol(t))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
