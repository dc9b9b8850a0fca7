package landlock

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignals checks that two processes under the same ruleset are in different domains: the
// second can signal neither the first nor a process without a domain, but its own children
// and itself.
func TestSignals(t *testing.T) {
	needRoot(t)
	needABI(t, 6)
	ruleset := makeBelow(t, t.TempDir(), &Ruleset{Signals: true})
	pid := sleeper(t, ruleset)
	free := strconv.Itoa(os.Getpid())
	list := []act{do("kill", pid), do("kill", free), do("kill", "0"), do("kill child")}
	if got := under(t, ruleset, list...); names(got) != "EPERM EPERM ok ok" {
		t.Error(names(got))
	}
	if got := under(t, nil, list...); names(got) != "ok ok ok ok" {
		t.Errorf("without a ruleset: %s", names(got))
	}
}

// sleeper starts a process under the ruleset, which runs until the test ends.
func sleeper(t *testing.T, ruleset *os.File) (pid string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{helperEnv + "=1"}
	cmd.ExtraFiles = []*os.File{ruleset}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	// It writes its result after it has enforced the ruleset, and then waits for the end
	// of its input.
	if _, err := in.Write([]byte(`{"Restrict":true,"Stay":true}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}
