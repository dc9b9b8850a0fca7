package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// Runtimes that are created and closed, some in the middle of a run, leave nothing.
func TestManyRuntimesEnd(t *testing.T) {
	tier.Soak(t)
	before := harness.TakeInventory()
	const atOnce = 8
	total := harness.Fewer(200, 50)
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range total {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			createAndEnd(t, i)
		})
	}
	wg.Wait()
	before.CheckLeaks(t)
}

// onDisk puts a runtime's tree on disk.
var onDisk = runtime.Limits{Disk: 256 << 20}

// createAndEnd creates a runtime, every other on disk, and closes it in one of several ways.
func createAndEnd(t *testing.T, i int) {
	var o runtime.Options
	if i/4%2 == 1 {
		o.Limits = onDisk
	}
	rt, err := runtime.Create(t.Context(), harness.Options(o))
	if err != nil {
		t.Error(err)
		return
	}
	const busy = `import { spawn } from 'node:child_process'; import { writeFileSync } from 'node:fs';
		spawn('sleep', ['100'], { detached: true });
		for (;;) writeFileSync('/tmp/file', Buffer.alloc(1 << 20));`
	moment := time.Duration(rand.IntN(100)) * time.Millisecond
	switch i % 4 {
	case 0: // closed while idle
	case 1: // closed during a run, perhaps during its start
		time.AfterFunc(moment, func() { rt.Close() })
		_, err = rt.Run(t.Context(), busy, runtime.RunOptions{})
	case 2: // canceled
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		defer cancel()
		_, err = rt.Run(ctx, busy, runtime.RunOptions{})
	case 3: // out of time
		_, err = rt.Run(t.Context(), busy, runtime.RunOptions{Timeout: moment + time.Millisecond})
	}
	if err != nil && !errors.Is(err, runtime.ErrClosed) && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

// runBusyHost starts runs that do not end, and waits to be killed.
func runBusyHost() {
	if err := mountState(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := range 3 {
		var o runtime.Options
		if i > 0 {
			o.Limits = onDisk
		}
		rt, err := runtime.Create(context.Background(), harness.Options(o))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for range 2 {
			go rt.Run(context.Background(), `require('fs').writeFileSync('/tmp/file', Buffer.alloc(8 << 20)); console.log('up'); for (;;);`, runtime.RunOptions{
				OnStdout: func(b []byte) { os.Stdout.Write(b) },
			})
		}
	}
	select {}
}

// All processes of a host's jails end when the host is killed, and the next host removes
// the rest. Both have a state folder that no other host of this machine clears.
func TestHostIsKilled(t *testing.T) {
	state := t.TempDir()
	before := harness.TakeInventory()
	host := hostProgram(t, "busy")
	host.Env = append(host.Env, stateVar+"="+state)
	host.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	up := bufio.NewScanner(out)
	for range 6 {
		if !up.Scan() || up.Text() != "up" {
			t.Fatalf("the host prints %q", up.Text())
		}
	}
	running := harness.TakeInventory()
	if n, disks := len(running.Processes)-len(before.Processes), len(running.Disks)-len(before.Disks); n < 9 || disks < 2 && !harness.InGVisor() { // three jails with a reaper and two runs
		t.Errorf("the host has %d processes in its jails, and %d disks", n, disks)
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	deadline := time.Now().Add(time.Minute)
	for len(harness.TakeInventory().Processes) > len(before.Processes) {
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", harness.TakeInventory().Processes)
		}
		time.Sleep(time.Millisecond)
	}
	slots := filepath.Join(state, "jails/*")
	if harness.HasAgent() && !harness.InGVisor() {
		harness.WaitFor(t, "agents, which clear everything themselves", func() bool { return len(before.Added()) == 0 && len(harness.Glob(slots)) == 0 })
	} else if len(before.Added()) == 0 || len(harness.Glob(slots)) == 0 {
		t.Error("a killed host left nothing to clear: this test proves nothing")
	}
	// A process clears the state of dead hosts when it makes its first jail.
	next := hostProgram(t, "next", "-test.run=^TestNextHost$")
	next.Env = append(next.Env, stateVar+"="+state)
	next.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if text, err := next.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	before.CheckLeaks(t)
	if left := harness.Glob(slots); len(left) > 0 {
		t.Errorf("the next host did not clear %v", left)
	}
}

// A process can make its first jail. TestHostIsKilled runs this test in a new process.
func TestNextHost(t *testing.T) {
	if res := harness.Run(t, harness.Create(t, runtime.Options{}), `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("%+v", res)
	}
}

// A program that only root may read and execute, in a folder that only root may enter, with
// root's strictest umask, can create jails.
func TestPrivateProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "umask 077; exec "+program+" -test.run='^TestNextHost$'")
	cmd.Env = append(os.Environ(), harness.ParentVar+"="+harness.Parent)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// runShortHost creates runtimes with too few descriptors, and once more with enough.
func runShortHost() {
	o := runtime.Options{CgroupParent: os.Getenv(harness.ParentVar)}
	failures := 0
	for few := range uint64(60) {
		few := unix.Rlimit{Cur: 8 + few, Max: 4096}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			fmt.Println(err)
		}
		rt, err := runtime.Create(context.Background(), o)
		if err == nil {
			_, err = rt.Run(context.Background(), "1", runtime.RunOptions{})
			err = errors.Join(err, rt.Close())
		}
		if err != nil {
			failures++
		}
		if err != nil && (!errors.Is(err, unix.EMFILE) || strings.Contains(err.Error(), unix.EBADF.Error())) {
			fmt.Printf("wrong: with %d: %v\n", few.Cur, err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
		fmt.Println(err)
	}
	rt, err := runtime.Create(context.Background(), o)
	if err == nil {
		err = errors.Join(rt.Close(), runtime.CloseIdle())
	}
	fmt.Println("after", failures > 0, "failures:", err)
}

// A host without descriptors gets errors, leaves nothing behind, and works again when it
// has some.
func TestFewDescriptors(t *testing.T) {
	before := harness.TakeInventory()
	text, err := hostProgram(t, "short").CombinedOutput()
	if err != nil || !strings.HasSuffix(string(text), "after true failures: <nil>\n") || strings.Contains(string(text), "wrong: ") {
		t.Errorf("%v\n%s", err, text)
	}
	before.CheckLeaks(t)
}
