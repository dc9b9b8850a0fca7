package escape

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gaol/jail/procfs"
	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// procEntry is what testdata/proc.mjs reports of a path in /proc.
type procEntry struct {
	Path, Kind, Text string
	Error            string   // from reading it
	Written          []string // errors from writing to it, "" for success
	IsKernels        bool     // nothing is mounted over it
}

type procWalk struct {
	Found []procEntry
	Own   []procEntry         // of the process that lists them
	Names map[string][]string // of each folder of a process
}

// walkProc lists folders of a jail's /proc, and the folders of some processes.
func walkProc(t *testing.T, rt *runtime.NodeRuntime, roots []string, processes ...string) procWalk {
	t.Helper()
	code, err := os.ReadFile("testdata/proc.mjs")
	if err != nil {
		t.Fatal(err)
	}
	asked, err := json.Marshal(map[string][]string{"roots": roots, "processes": processes})
	if err != nil {
		t.Fatal(err)
	}
	res := harness.Run(t, rt, string(code), runtime.RunOptions{Args: []string{string(asked)}})
	var w procWalk
	if err := res.Decode(&w); err != nil {
		t.Fatalf("%v: %s", err, res.Stderr)
	}
	return w
}

// isHidden reports whether the path does not exist, or an empty file or folder is mounted
// over it. Entries in a folder are entries of their own.
func (e procEntry) isHidden() bool {
	return e.Kind == "none" || e.Error == "" && !e.IsKernels && (e.Kind == "folder" || e.Kind == "file" && e.Text == "")
}

// isWritten reports whether one of the attempts to write to it succeeded.
func (e procEntry) isWritten() bool { return slices.Contains(e.Written, "") && !e.isNull() }

// isNull reports whether the null device is mounted over it, as OCI runtimes mask files.
func (e procEntry) isNull() bool {
	return harness.InContainer() && e.Text == "" && slices.Equal(e.Written, []string{"", "EINVAL", "EPERM"})
}

// isOwnMode reports whether the process could only change the mode of an entry of its own folder, which gVisor allows for some.
func (e procEntry) isOwnMode() bool {
	return harness.InGVisor() && strings.HasPrefix(e.Path, "/proc/self/") && slices.Equal(e.Written, []string{"EACCES", "EACCES", ""})
}

// isConstant reports whether it shows no more than a line of gVisor, whose kernel does not implement it.
func (e procEntry) isConstant() bool {
	return harness.InGVisor() && e.Error == "" && strings.Count(e.Text, "\n") == 1
}

// lacking lists the settings that gVisor lacks.
var lacking = []string{"fs/inotify/max_user_watches", "kernel/ngroups_max"}

// row finds the table's row for the entry, or for a folder the first row below it.
func (e procEntry) row() (r procfs.Entry, listed bool) {
	inProc := strings.TrimPrefix(e.Path, "/proc/")
	if setting, ok := strings.CutPrefix(inProc, "sys/"); ok {
		i := slices.IndexFunc(procfs.Sysctls, func(r procfs.Entry) bool {
			return r.Name == setting || e.Kind == "folder" && strings.HasPrefix(r.Name, setting+"/")
		})
		if i < 0 {
			return r, false
		}
		return procfs.Sysctls[i], true
	}
	i := slices.IndexFunc(procfs.RootEntries, func(r procfs.Entry) bool { return r.Name == inProc })
	if i < 0 {
		return r, false
	}
	return procfs.RootEntries[i], true
}

// Every entry of /proc is in a table with its reason, or hidden. None can be written.
func TestEscapeProc(t *testing.T) {
	for name, p := range map[string]policy.Permissions{
		"default": policy.Default(), "open": policy.Open(), "strict": policy.Strict(), "own processes": {Process: policy.Scope{Default: policy.Deny, Rules: []policy.Rule{{Mode: policy.Allow, Operations: []policy.Operation{"signal"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			// Without Landlock's newest rights, the permissions on /proc are the same.
			rt := harness.Create(t, runtime.Options{Permissions: p, AllowDegraded: true})
			w := walkProc(t, rt, []string{"/proc"}, "self", "thread-self")
			checkProcTree(t, w.Found)
			checkProcProcesses(t, w)
		})
	}
}

func checkProcTree(t *testing.T, found []procEntry) {
	t.Helper()
	seen := map[string]bool{}
	for _, e := range found {
		if e.isWritten() {
			t.Errorf("%s can be written: %q", e.Path, e.Written)
		}
		if e.Path == "/proc" {
			continue
		}
		switch r, listed := e.row(); {
		case listed:
			seen[e.Path] = true
			if r.Reason == "" || e.Kind == "file" && e.Text == "" {
				t.Errorf("%s is listed with the reason %q, and reads as %q, %s", e.Path, r.Reason, e.Text, e.Error)
			}
		case !e.isHidden() || strings.Count(e.Path, "/") > 2 && !harness.InContainer(): // which hides settings one by one
			t.Errorf("%s is in no table and shows: %+.200v", e.Path, e)
		}
	}
	for _, r := range procfs.RootEntries {
		if !seen["/proc/"+r.Name] {
			t.Errorf("%s is not there", r.Name)
		}
	}
	for _, r := range procfs.Sysctls {
		if harness.InGVisor() && slices.Contains(lacking, r.Name) {
			continue
		}
		if _, err := os.Stat("/proc/sys/" + r.Name); err == nil && !seen["/proc/sys/"+r.Name] {
			t.Errorf("the setting %s is not there", r.Name)
		}
	}
}

// checkProcProcesses fails the test if the folder of a process has entries that no row
// lists, or entries that the process itself can write.
func checkProcProcesses(t *testing.T, w procWalk) {
	t.Helper()
	if len(w.Own) < 50 || len(w.Names) < 2 {
		t.Errorf("only %d entries of the process itself, and %d folders, are looked at", len(w.Own), len(w.Names))
	}
	for _, e := range w.Own {
		if e.isWritten() && !e.isOwnMode() {
			t.Errorf("%s can be written: %q", e.Path, e.Written)
		}
	}
	for _, e := range w.Own {
		name, inNet := strings.CutPrefix(e.Path, "/proc/self/net/")
		name, _, isInside := strings.Cut(name, "/")
		listed := slices.ContainsFunc(procfs.NetEntries, func(r procfs.Entry) bool { return r.Name == name })
		if inNet && (listed && e.Error != "" || !listed && (e.Error != "EACCES" && !e.isConstant() || isInside)) {
			t.Errorf("%s, listed: %v, shows %q, %s", e.Path, listed, e.Text, e.Error)
		}
	}
	for dir, names := range w.Names {
		for _, name := range names {
			if !slices.ContainsFunc(processEntries, func(r processEntry) bool { return r.Name == name }) {
				t.Errorf("%s/%s is in no table", dir, name)
			}
		}
	}
}

// The table of process entries holds for pid 1, for another run and for its threads.
// Entries that the table marks as needing ptrace access show nothing of pid 1.
func TestEscapeProcOthers(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	other := harness.StartCommand(t, rt, "sh", "-c", "echo $$; exec sleep 600")
	w := walkProc(t, rt, []string{"/proc/1"}, "1", other.First)
	checkProcProcesses(t, w)
	traced := map[string]bool{}
	for _, r := range processEntries {
		traced[r.Name] = r.Traced
	}
	if harness.InGVisor() { // it shows everyone the positions and flags
		traced["fdinfo"] = false
	}
	checked := 0
	for _, e := range w.Found {
		rest, _ := strings.CutPrefix(e.Path, "/proc/1/")
		name, _, _ := strings.Cut(rest, "/")
		if e.isWritten() {
			t.Errorf("%s can be written: %q", e.Path, e.Written)
		}
		if e.Kind == "file" && traced[name] {
			checked++
			if e.Text != "" && e.Text != "0" && e.Text != "ffffffff\n" { // what wchan and the like show without ptrace access
				t.Errorf("%s shows %.100q", e.Path, e.Text)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d files that take the right to trace are looked at", checked)
	}
}

// Guests cannot create pressure triggers. Each costs the kernel a timer, and their files
// are writable for everyone.
func TestEscapePressureTriggers(t *testing.T) {
	const trigger = "some 150000 2000000\n"
	rt := harness.Create(t, runtime.Options{})
	for _, path := range []string{"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory"} {
		if host, err := os.OpenFile(path, os.O_RDWR, 0); err == nil { // otherwise the kernel has none
			if _, err := host.WriteString(trigger); err != nil {
				t.Errorf("the host can't make a trigger, so this proves nothing: %v", err)
			}
			host.Close()
		}
		res := harness.Run(t, rt, `import fs from 'node:fs'; const fd = fs.openSync(process.argv[2], 'r+'); __return(fs.writeSync(fd, process.argv[3]))`, runtime.RunOptions{Args: []string{path, trigger}})
		if res.ExitCode == 0 {
			t.Errorf("%s accepts a trigger: %s", path, res.Value)
		}
	}
}

// /proc/locks shows a guest no lock, neither of another sandbox nor of its own.
func TestEscapeLocks(t *testing.T) {
	if harness.InGVisor() { // which lacks the file
		harness.Output(t, harness.Create(t, runtime.Options{}), runtime.RunOptions{}, "test", "!", "-e", "/proc/locks")
		return
	}
	offset := strconv.Itoa(1<<40 + os.Getpid())
	rt, other := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	harness.StartCommand(t, rt, harness.Install(t, rt, "locks"), offset)
	if host := strings.Join(harness.Lines("/proc/locks"), "\n"); strings.Count(host, " "+offset+" "+offset) != 1 {
		t.Fatalf("the host does not see the lock, so this proves nothing:\n%s", host)
	}
	for name, rt := range map[string]*runtime.NodeRuntime{"its own": rt, "another": other} {
		if got := harness.Output(t, rt, runtime.RunOptions{}, "cat", "/proc/locks"); got != "" {
			t.Errorf("%s sandbox sees %q", name, got)
		}
	}
}

// Everything that runc hides in /proc is hidden, and everything that it makes read-only
// cannot be written.
func TestEscapeProcAsRunc(t *testing.T) {
	dir := t.TempDir()
	if text, err := exec.Command(harness.Runc(t), "spec", "--bundle", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Linux struct{ MaskedPaths, ReadonlyPaths []string }
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	masked, readonly := spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths
	if len(masked) < 5 || len(readonly) < 3 {
		t.Fatalf("runc hides %q and fixes %q", masked, readonly)
	}
	readOnly := "EROFS"
	if harness.InGVisor() {
		readOnly = "EACCES" // it checks the mode first
	}
	rt := harness.Create(t, runtime.Options{})
	for _, e := range walkProc(t, rt, masked).Found {
		if !e.isHidden() {
			t.Errorf("%s is not hidden: %+.200v", e.Path, e)
		}
	}
	for _, e := range walkProc(t, rt, readonly).Found {
		if e.isWritten() || e.Kind != "none" && !e.isNull() && !slices.Contains(e.Written, readOnly) {
			t.Errorf("%s is not read-only: %q", e.Path, e.Written)
		}
	}
}

// /proc/stat does not change while the processors work, and differs from the host's.
func TestEscapeProcStat(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res := harness.Run(t, rt, `import fs from 'node:fs'; import { execFileSync } from 'node:child_process';
		const stat = () => fs.readFileSync('/proc/stat', 'utf8'), busy = () => process.cpuUsage().user;
		const before = stat(), start = busy();
		while (busy() < start + 100_000) execFileSync('/bin/true'); // 10 ticks, with many context switches and processes
		__return([before, stat()])`, runtime.RunOptions{})
	var got [2]string
	if err := res.Decode(&got); err != nil || got[0] != got[1] {
		t.Errorf("%v, it changes:\n%s%s%s", err, got[0], got[1], res.Stderr)
	}
	for line := range strings.Lines(got[0]) {
		name, values, _ := strings.Cut(strings.TrimSpace(line), " ")
		for i, v := range strings.Fields(values) {
			if isIdle := strings.HasPrefix(name, "cpu") && i == 3; v != "0" && !isIdle && name != "btime" && name != "procs_running" {
				t.Errorf("%s shows %s", name, v)
			}
		}
	}
}
