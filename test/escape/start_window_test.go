package escape

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
)

// duringStarts runs an attack while n runs and commands start, then stops it and returns
// its output.
func duringStarts(t *testing.T, rt *runtime.NodeRuntime, n int, attack string, args ...string) (found []string) {
	t.Helper()
	for range 10 { // the attack is a race, which a busy machine can lose for it
		b := harness.StartCommand(t, rt, attack, append([]string{"25"}, args...)...)
		for i := range n {
			if i%20 == 0 {
				harness.Run(t, rt, ``, runtime.RunOptions{})
			} else {
				harness.Output(t, rt, runtime.RunOptions{}, "true")
			}
		}
		harness.Output(t, rt, runtime.RunOptions{}, "touch", "/tmp/end")
		if found = b.Rest(); len(found) != 1 || !strings.HasSuffix(found[0], " 0") {
			break
		}
		harness.Output(t, rt, runtime.RunOptions{}, "rm", "/tmp/end")
	}
	return found
}

// Before a run installs its seccomp filter, another run tries to trace it. The entry
// program, which cannot be read, prevents that. Package jail's
// TestEscapeWindowBeforeTheFilter shows that the attack works otherwise.
func TestEscapeWindowBeforeTheFilter(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	found := duringStarts(t, rt, harness.Fewer(110, 40), harness.Install(t, rt, "window"))
	if harness.InGVisor() { // it does not protect namespaces; no guest can enter one: see TestEscapeKernelSurface
		found = slices.DeleteFunc(found, func(line string) bool { return strings.HasPrefix(line, "ns/mnt read ") })
	}
	if len(found) != 1 || found[0] == "attempts 0" {
		t.Errorf("found %s", strings.Join(found, ", "))
	}
}

// A run that another one stops during its start ends at its timeout.
func TestEscapeStoppedDuringStart(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	attack := harness.StartCommand(t, rt, harness.Install(t, rt, "window"), "60", "stop")
	stopped := 0
	for range 300 { // the attack is a race
		began := time.Now()
		res, err := rt.Command(t.Context(), "true", nil, runtime.RunOptions{Timeout: 500 * time.Millisecond})
		if took := time.Since(began); err != nil || took > 10*time.Second || res.Cause != runtime.CauseTimeout && res.Cause != runtime.CauseNone {
			t.Fatalf("after %v: %+v, %v, want an end, or a timeout after 0.5s", took, res, err)
		}
		if res.Cause == runtime.CauseTimeout {
			if stopped++; stopped == 3 {
				break
			}
		}
	}
	if stopped == 0 {
		t.Error("no run was stopped: the test proves nothing")
	}
	attack.Stop()
	if res := harness.Run(t, rt, `__return(1)`, runtime.RunOptions{}); string(res.Value) != "1" {
		t.Errorf("after the attack: %s", res.Stderr)
	}
}

// Close does not wait for a stopped process.
func TestEscapeStoppedAndClosed(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	harness.StartCommand(t, rt, harness.Install(t, rt, "window"), "60", "stop")
	var started atomic.Int64
	ended := make(chan error)
	go func() {
		for {
			if _, err := rt.Command(t.Context(), "true", nil, runtime.RunOptions{}); err != nil {
				ended <- err
				return
			}
			started.Add(1)
		}
	}()
	for last := int64(-1); last != started.Load(); time.Sleep(time.Second) { // until a process is stopped and no run starts any more
		last = started.Load()
	}
	began := time.Now()
	if err := rt.Close(); err != nil || time.Since(began) > 15*time.Second {
		t.Errorf("closed after %v: %v", time.Since(began), err)
	}
	if err := <-ended; !errors.Is(err, runtime.ErrClosed) {
		t.Errorf("the stopped command: %v", err)
	}
}

// CVE-2019-5736: /proc/PID/exe of the program that enters the jail leads to the host's own
// binary.
func TestEscapeProgramOverwrite(t *testing.T) {
	before := hostPrograms(t)
	rt := harness.Create(t, runtime.Options{})
	exe := harness.Install(t, rt, "exe")
	paths := []string{"/proc/1/exe", "/usr/local/bin/node", "/usr/libexec/gaol/enter", "/usr/libexec/gaol/catatonit", "/usr/libexec/gaol/prelude.cjs", "/bin/sh"}
	if !harness.InGVisor() { // in which guests can write to their own programs, also while they run
		paths = append(paths, "/proc/self/exe")
	}
	found := duringStarts(t, rt, harness.Fewer(100, 30), exe, paths...)
	if len(found) != 1 || !strings.HasPrefix(found[0], "held ") || found[0] == "held 0" {
		t.Errorf("found %s", strings.Join(found, ", "))
	}
	for path, sum := range hostPrograms(t) {
		if sum != before[path] {
			t.Errorf("%s has changed", path)
		}
	}
	// Programs cannot be written because they belong to another user: the guest can write its own.
	res := harness.Run(t, rt, `import fs from 'node:fs'; fs.writeFileSync(process.argv[2], ''); __return(1)`, runtime.RunOptions{Args: []string{exe}})
	if string(res.Value) != "1" {
		t.Errorf("a program of the guest's own can't be overwritten: %s: the test proves nothing", res.Stderr)
	}
}

// hostPrograms returns checksums of this binary and of the files of the image.
func hostPrograms(t *testing.T) map[string][sha256.Size]byte {
	t.Helper()
	sums := map[string][sha256.Size]byte{"/proc/self/exe": sum(t, "/proc/self/exe")}
	err := filepath.WalkDir(harness.DefaultImage(t).Root(), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			sums[path] = sum(t, path)
		}
		return err
	})
	if err != nil || len(sums) < 10 {
		t.Fatalf("%d files, %v", len(sums), err)
	}
	return sums
}

func sum(t *testing.T, path string) (sum [sha256.Size]byte) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		t.Fatal(err)
	}
	hash.Sum(sum[:0])
	return sum
}
