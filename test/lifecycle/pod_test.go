package lifecycle

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/cgroup"
	"gaol/test/harness"
)

const hierarchy = "/sys/fs/cgroup"

// makePod makes a group as the kubelet makes it for a container, with a limit of memory at which all of its processes would end.
func makePod(t *testing.T, memory int) string {
	t.Helper()
	pod := filepath.Join(hierarchy, "gaol-test-pod-"+fmt.Sprint(os.Getpid()))
	if err := os.WriteFile(hierarchy+"/cgroup.subtree_control", []byte("+cpu +memory +pids"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(pod, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removePod(t, pod) })
	for file, text := range map[string]string{"memory.max": fmt.Sprint(memory), "memory.swap.max": "0", "memory.oom.group": "1"} {
		if err := os.WriteFile(filepath.Join(pod, file), []byte(text), 0); err != nil && !(file == "memory.swap.max" && os.IsNotExist(err)) {
			t.Fatal(err)
		}
	}
	return pod
}

// removePod kills the processes of a group, and removes it.
func removePod(t *testing.T, pod string) {
	_ = os.WriteFile(pod+"/cgroup.kill", []byte("1"), 0) // it may be empty
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		groups := []string{}
		_ = filepath.WalkDir(pod, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				groups = append(groups, path)
			}
			return nil
		})
		for i := len(groups) - 1; i >= 0; i-- {
			_ = unix.Rmdir(groups[i]) // fails while it has processes
		}
		if _, err := os.Stat(pod); err != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s is left", pod)
			return
		}
	}
}

// inPod runs a script in a group and in new namespaces, and returns its output.
func inPod(t *testing.T, pod string, flags uintptr, script string, args ...string) string {
	t.Helper()
	dir, err := os.Open(pod)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command("sh", append([]string{"-ec", "mount --make-rprivate /; " + script, "sh"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | flags, UseCgroupFD: true, CgroupFD: int(dir.Fd()), Pdeathsig: unix.SIGKILL}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	return string(out)
}

// A container's root group has processes, so that it cannot enable controllers for groups below it. gaol moves them to another group.
// In a privileged pod, the container sees the groups of the whole machine: those of gaol are in the container's nevertheless.
func TestCgroupsOfPod(t *testing.T) {
	if v, err := cgroup.Detect(); err != nil || v != cgroup.V2 {
		t.Skip("only cgroup v2 has groups of containers: make test-vm runs this test")
	}
	const fill = `const all = []; for (;;) all.push(Buffer.alloc(4 << 20, 1));`
	harness.DefaultImage(t)
	tests := []struct {
		name       string
		flags      uintptr
		setup      string
		pod, limit int // MiB of memory
	}{
		{"cgroup namespace", unix.CLONE_NEWCGROUP, "umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup", 2048, 96},
		{"privileged, at the run's limit", unix.CLONE_NEWPID, "mount -t proc proc /proc", 2048, 96},
		{"privileged, at the pod's limit", unix.CLONE_NEWPID, "mount -t proc proc /proc", 320, 2048},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pod := makePod(t, test.pod<<20)
			// The shell remains the first process. It fails if a limit ends it together with the guest.
			out := inPod(t, pod, test.flags, test.setup+`
				"$1" run --json --timeout 10m --memory "$2" -e "$3" || [ $? = 137 ]
				"$1" run -e 'console.log(6 * 7)' >&2
				cat /proc/self/cgroup >&2`, harness.Gaol(t), fmt.Sprintf("%dm", test.limit), fill)
			var result struct{ Cause string }
			if err := json.Unmarshal([]byte(out), &result); err != nil || result.Cause != "memory" {
				t.Errorf("%v, cause %q in %s", err, result.Cause, out)
			}
			for file, want := range map[string]bool{"gaol": true, "init.scope": true, "init.scope/gaol": false} {
				if _, err := os.Stat(filepath.Join(pod, file)); (err == nil) != want {
					t.Errorf("group %s: %v, want it %v", file, err, want)
				}
			}
			if own, err := os.ReadFile(pod + "/memory.oom.group"); strings.TrimSpace(string(own)) != "0" {
				t.Errorf("memory.oom.group: %s, %v", own, err)
			}
		})
	}
}
