package cli

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// gaol serve survives SIGHUP, which ends other commands, and SIGTERM is its successful end.
func TestServeSignals(t *testing.T) {
	cmd := exec.Command(harness.Gaol(t), "serve", "--socket", filepath.Join(t.TempDir(), "s"), "--log-format", "json")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	next := map[string]syscall.Signal{"serve": syscall.SIGHUP, "reload": syscall.SIGTERM}
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		for message, sig := range next {
			if strings.Contains(lines.Text(), `"msg":"`+message+`"`) {
				delete(next, message)
				if err := cmd.Process.Signal(sig); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if err := cmd.Wait(); err != nil || len(next) > 0 {
		t.Errorf("gaol serve: %v, without %v; its log:\n%s", err, next, &log)
	}
}
