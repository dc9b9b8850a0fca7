package cgroup

import (
	"errors"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// A namespace root exists in every hierarchy, and its processes can use only the given
// devices.
func testNamespaceRoot(t *testing.T, s subject) {
	g, err := newNamespaceRoot(s.on, testPath(), []Device{{1, 5}, {5, AnyMinor}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		kill(t, g)
		if err := g.Delete(); err != nil {
			t.Error(err)
		}
		for _, d := range append(g.Dirs(), g.OtherDirs()...) {
			if _, err := os.Stat(d); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", d, err)
			}
		}
	}()
	files := joinFiles(g)
	for _, d := range g.OtherDirs() {
		if _, err := os.Stat(d + "/tasks"); err == nil { // not with v2; processes are created in the group
			files = append(files, d+"/tasks")
		}
	}
	script := `for f; do echo 0 >"$f" || exit 1; done; true </dev/zero && ! true </dev/full; echo $?; exec sleep 60`
	cmd, out := startShell(t, script, files)
	line := make([]byte, 2)
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "0\n" {
		t.Errorf("%q, %v: want /dev/zero to open, and /dev/full not to", line, err)
	}
	outside := 0
	groups, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cgroup")
	for line := range strings.Lines(string(groups)) {
		if !strings.HasSuffix(strings.TrimSpace(line), ":"+g.Path()) {
			outside++
		}
	}
	// One may differ: a v2 mount beside v1, in which the process was not created.
	if err != nil || s.limits && outside > 1 {
		t.Errorf("%v: in other groups: %s", err, groups)
	}
}

// Creating a group leaves no descriptor open for the garbage collector: a host creates
// thousands of jails.
func testNamespaceRootDescriptors(t *testing.T, s subject) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	const groups, kept = 20, 4 // kept by the library and the poller
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	before := open()
	for range groups {
		g, err := newNamespaceRoot(s.on, testPath(), []Device{{1, 5}})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Delete(); err != nil {
			t.Error(err)
		}
	}
	if after := open(); after > before+kept {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}
