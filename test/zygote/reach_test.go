package zygote

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
)

// beating is a program that prints a line every 20 ms.
const beating = `console.log('up'); setInterval(() => console.log('beat'), 20)`

// startBeating starts that program, and returns a function that fails the test if it
// prints no more.
func startBeating(t *testing.T, rt *runtime.NodeRuntime) (checkAlive func()) {
	t.Helper()
	b := harness.StartCommand(t, rt, "node", "-e", beating)
	return func() {
		t.Helper()
		b.Drain()
		b.Next(t)
	}
}

// onHost runs a program of testdata/escape without a jail.
func onHost(t *testing.T, name string, args ...string) string {
	t.Helper()
	program, err := harness.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command(file, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text)
}

// No pid that a guest can name is that of the zygote or of another sandbox's run: not for
// signals, tracing or reading, nor in /proc.
func TestZygoteIsOutOfReach(t *testing.T) {
	mine, other := harness.CreateForking(t, runtime.Options{}), harness.CreateForking(t, runtime.Options{})
	reach := harness.Install(t, mine, "reach")
	checkAlive := startBeating(t, other)
	zygotes := harness.Zygotes(t)
	if len(zygotes) == 0 && !harness.InGVisor() { // where the host sees none
		t.Fatal("no zygote is running")
	}
	pid := strconv.Itoa(append(zygotes, os.Getpid())[0])
	const all = "kill tgkill tkill sigqueue pidfd pidfd_getfd ptrace process_vm_readv mem environ maps fd fd/1 root cwd ns status"
	if got := onHost(t, "reach", pid, pid); got != all+" of "+pid+"\ndone\n" {
		t.Errorf("outside of a jail it is reached by %s: this test proves nothing", got)
	}
	most := harness.Lines("/proc/sys/kernel/pid_max")[0]
	if n, _ := strconv.Atoi(most); n > harness.Fewer(70000, 10000) { // pids in a jail start at 1
		most = strconv.Itoa(harness.Fewer(70000, 10000))
	}
	for _, numbers := range [][]string{{"2", most}, {pid, pid}} {
		if got := harness.Output(t, mine, runtime.RunOptions{}, reach, numbers...); got != "done" {
			t.Errorf("from its own sandbox it reached:\n%s", got)
		}
		for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
			args := append(slices.Clone(numbers), strconv.Itoa(int(signal)))
			if got := harness.Output(t, mine, runtime.RunOptions{}, reach, args...); got != "done" {
				t.Errorf("with %v it reached:\n%s", signal, got)
			}
		}
	}
	checkAlive()
	if now := harness.Zygotes(t); !slices.Equal(now, zygotes) {
		t.Errorf("zygotes %v, before %v", now, zygotes)
	}
	if harness.InGVisor() {
		return
	}
	if state := harness.Lines("/proc/" + pid + "/stat")[0]; !strings.Contains(state, ") S ") {
		t.Errorf("the zygote: %s", state)
	}
}

// A run can end another run of its own sandbox, and do nothing else to it. The next run and
// the host are not affected.
func TestZygoteSiblingInReach(t *testing.T) {
	rt := harness.CreateForking(t, runtime.Options{})
	reach := harness.Install(t, rt, "reach")
	victim := make(chan *runtime.Result)
	up := make(chan struct{})
	go func() {
		res, err := rt.Run(t.Context(), beating, runtime.RunOptions{OnStdout: func(b []byte) {
			if bytes.HasPrefix(b, []byte("up")) {
				close(up)
			}
		}})
		if err != nil {
			t.Error(err)
		}
		victim <- res
	}()
	<-up
	got := harness.Output(t, rt, runtime.RunOptions{}, reach, "2", "500")
	if !strings.Contains(got, "kill tgkill") || !strings.Contains(got, "environ maps") {
		t.Errorf("reached %q: this test proves nothing of numbers", got)
	}
	for _, way := range []string{"ptrace", "process_vm_readv", "pidfd_getfd"} { // refused by the filter
		if strings.Contains(got, way) {
			t.Errorf("reached %s", got)
		}
	}
	harness.Output(t, rt, runtime.RunOptions{}, reach, "2", "500", fmt.Sprint(int(unix.SIGKILL)))
	if res := <-victim; res.Cause != runtime.CauseSignal || res.Signal != "SIGKILL" {
		t.Errorf("the victim: %+v", res)
	}
	began := time.Now()
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" || time.Since(began) > 15*time.Second {
		t.Errorf("the next run: %+v", res)
	}
}
