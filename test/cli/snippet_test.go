package cli

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// SIGINT ends a snippet. Its lines arrive before, and its state follows.
func TestSnippetInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.ts")
	if err := os.WriteFile(file, []byte("export const n = 7;\nconsole.log('begins');\nawait new Promise((done) => setTimeout(done, 9000));\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), "snippet", "run", "--timeout", "10s", file)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	harness.Expect(t, bufio.NewReader(stdout), "[log] begins\n")
	if err := cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit status shows it
	if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.String() != "error: sandbox: aborted by caller signal\n" {
		t.Errorf("exit status %d; standard error: %s", code, &stderr)
	}
}

// On a terminal, a check shows its progress, and failures in color.
func TestSnippetCheckOnTerminal(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.ts": "console.log(1);\n", "b.ts": "null.x;\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := openTerminal(t)
	cmd := exec.CommandContext(t.Context(), harness.Gaol(t), "snippet", "check", dir)
	cmd.Env = append(os.Environ(), "NO_COLOR=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.program, d.program, d.program
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Expect(t, d.screen, "examples")
	harness.Expect(t, d.screen, "0/2")
	harness.Expect(t, d.screen, "\x1b[31mFAIL\x1b[0m "+dir+"/b.ts:1")
	harness.Expect(t, d.screen, "2 examples: 1 passed, 1 failed")
	_ = cmd.Wait() // the exit status shows it
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit status %d", code)
	}
}
