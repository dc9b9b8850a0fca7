package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

const (
	endsWith3   = `process.on("SIGTERM", () => process.exit(3)); process.on("SIGINT", () => process.exit(4)); setInterval(() => {}, 1000); console.log("up")`
	ignoresBoth = `process.on("SIGTERM", () => console.log("no")); process.on("SIGINT", () => console.log("no")); setInterval(() => {}, 1000); console.log("up")`
	ignorant    = `setInterval(() => {}, 1000); console.log("up")`
)

// The first SIGINT or SIGTERM goes to the program, whose exit status is then that of gaol. The
// second one, or the end of the grace period, kills it.
func TestRunSignals(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for _, door := range []struct {
		name string
		args []string
	}{{"here", nil}, {"server", []string{"--server=" + s.Socket}}} {
		for _, tc := range []struct {
			name, code string
			first      syscall.Signal
			second     syscall.Signal // when the program has had the first one; 0: none
			want       int
		}{
			{"ends itself on SIGTERM", endsWith3, unix.SIGTERM, 0, 3},
			{"ends itself on SIGINT", endsWith3, unix.SIGINT, 0, 4},
			{"does not handle it", ignorant, unix.SIGTERM, 0, 143},
			{"ignores the first", ignoresBoth, unix.SIGTERM, unix.SIGINT, 130},
			{"outlives the grace period", ignoresBoth, unix.SIGINT, 0, 130},
			{"SIGHUP", endsWith3, unix.SIGHUP, 0, 129},
		} {
			t.Run(door.name+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				cmd, out := startGaol(t, append([]string{"run", "-e", tc.code}, door.args...)...)
				harness.Expect(t, out, "up\n")
				began := time.Now()
				_ = cmd.Process.Signal(tc.first)
				if tc.second != 0 {
					harness.Expect(t, out, "no\n")
					_ = cmd.Process.Signal(tc.second)
				}
				if got := code(t, cmd); got != tc.want {
					t.Errorf("exit status %d, want %d", got, tc.want)
				}
				if took := time.Since(began); tc.name == "outlives the grace period" && took < 5*time.Second {
					t.Errorf("killed after %v", took)
				}
			})
		}
	}
}

// startGaol starts gaol, and returns its standard output.
func startGaol(t *testing.T, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if stderr.Len() > 0 {
			t.Errorf("standard error: %s", &stderr)
		}
	})
	return cmd, bufio.NewReader(stdout)
}

// A program that a signal has ended gets a JSON object like any other. It reports on a file that it
// is ready, because --json passes no output through.
func TestRunSignalJSON(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	if err := unix.Mkfifo(ready, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd, out := startGaol(t, "run", "--json", "--mount", dir+":/mnt/x:rw", "-e", `
		process.on("SIGTERM", () => { globalThis.__return("saved"); process.exit(3) });
		setInterval(() => {}, 1000);
		require("fs").writeFileSync("/mnt/x/ready", "up")`)
	if text, err := os.ReadFile(ready); err != nil || string(text) != "up" {
		t.Fatalf("%q, %v", text, err)
	}
	_ = cmd.Process.Signal(unix.SIGTERM)
	var run runtime.Result
	if err := json.NewDecoder(out).Decode(&run); err != nil || run.ExitCode != 3 || string(run.Value) != `"saved"` || run.Cause != "" {
		t.Errorf("%+v, %v", run, err)
	}
	if got := code(t, cmd); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
}

// A program on a terminal gets signals from outside, and so does that of gaol exec.
func TestSignalsElsewhere(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c, err := client.Dial(t.Context(), client.Options{Socket: s.Socket})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sb, err := c.Create(t.Context(), client.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	executed, out := startGaol(t, "exec", "--server", s.Socket, sb.ID(), "--", "node", "-e", endsWith3)
	harness.Expect(t, out, "up\n")
	_ = executed.Process.Signal(unix.SIGINT)
	if got := code(t, executed); got != 4 {
		t.Errorf("exit status %d of exec, want 4", got)
	}
	d := openTerminal(t)
	cmd := d.begin(t, harness.Gaol(t), "--tty", "-e", endsWith3)
	harness.Expect(t, d.screen, "up\r\n")
	_ = cmd.Process.Signal(unix.SIGTERM)
	if got := code(t, cmd); got != 3 {
		t.Errorf("exit status %d on a terminal, want 3", got)
	}
}
