package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeFiles writes a directory that looks like the kernel's.
func fakeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// v2Group are the files of a group as of Linux 6.12, after a run.
var v2Group = map[string]string{
	"cgroup.controllers": "cpuset cpu io memory pids\n",
	"cgroup.events":      "populated 0\nfrozen 0\n",
	"cgroup.procs":       "",
	"cgroup.type":        "domain\n",
	"cpu.max":            "max 100000\n",
	"cpu.stat":           "usage_usec 31415\nuser_usec 30000\nsystem_usec 1415\nnice_usec 0\nnr_periods 3\n",
	"memory.max":         "max\n",
	"memory.swap.max":    "max\n",
	"memory.current":     "1048576\n",
	"memory.peak":        "31457280\n",
	"memory.stat":        "anon 1024\nshmem 4096\n",
	"memory.events":      "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
	"pids.max":           "max\n",
	"pids.peak":          "11\n",
	"pids.events":        "max 7\n",
}

func TestV2Files(t *testing.T) {
	tests := []struct {
		name   string
		remove []string // files that an older kernel lacks
		limits Limits
		wrote  map[string]string
		usage  Usage
	}{
		{
			name:   "all limits",
			limits: Limits{Memory: 256 << 20, CPUs: 1.5, Pids: 64},
			wrote: map[string]string{
				"memory.max": "268435456", "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "64",
			},
			usage: Usage{31415 * time.Microsecond, 1048576, 31457280, 11, 1, 7, 4096},
		},
		{
			name:  "no limits",
			wrote: map[string]string{"memory.max": "max\n", "memory.swap.max": "max\n", "cpu.max": "max 100000\n", "pids.max": "max\n"},
			usage: Usage{31415 * time.Microsecond, 1048576, 31457280, 11, 1, 7, 4096},
		},
		{
			name:   "old kernel without swap",
			remove: []string{"memory.peak", "pids.peak", "memory.swap.max"},
			limits: Limits{Memory: 1 << 20, CPUs: 0.001},
			wrote:  map[string]string{"memory.max": "1048576", "memory.swap.max": "", "cpu.max": "1000 100000"},
			usage:  Usage{CPU: 31415 * time.Microsecond, Memory: 1048576, OOMKills: 1, PidsRefused: 7, FileMemory: 4096},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "gaol/r1")
			fakeFiles(t, dir, v2Group)
			fakeFiles(t, filepath.Dir(dir), map[string]string{"cgroup.subtree_control": "cpu memory pids\n"})
			for _, name := range test.remove {
				os.Remove(filepath.Join(dir, name))
			}
			g, err := newGroup(newV2(root, controllersV2), "/gaol/r1", test.limits)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range test.wrote {
				got, _ := os.ReadFile(filepath.Join(dir, name))
				if string(got) != want {
					t.Errorf("%s holds %q, want %q", name, got, want)
				}
			}
			usage, err := g.Usage()
			if diff := cmp.Diff(test.usage, usage); diff != "" || err != nil {
				t.Errorf("usage (-want +got):\n%s%v", diff, err)
			}
		})
	}
}

// Controllers are enabled only where they are missing, because enabling waits for other
// groups.
func TestV2Enable(t *testing.T) {
	const all, on, none = "+cpu +memory +pids", "cpu memory pids\n", "\n"
	tests := []struct {
		name       string
		root, gaol string // the enabled controllers
		exists     bool   // the group itself
		wantRoot   string
		wantGaol   string
	}{
		{"nowhere", none, "cpu\n", false, all, all},
		{"above the parent", on, none, false, on, all},
		{"in the parent", on, on, false, on, on},
		{"in the parent, by another process", on, on, true, on, all},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			fakeFiles(t, root, map[string]string{"cgroup.subtree_control": test.root, "gaol/cgroup.subtree_control": test.gaol})
			if test.exists {
				fakeFiles(t, root, map[string]string{"gaol/r1/cgroup.subtree_control": none})
			}
			if _, err := newV2Group(root); err != nil {
				t.Fatal(err)
			}
			for file, want := range map[string]string{"": test.wantRoot, "gaol": test.wantGaol} {
				if got, _ := os.ReadFile(filepath.Join(root, file, "cgroup.subtree_control")); string(got) != want {
					t.Errorf("/%s: %q, want %q", file, got, want)
				}
			}
			// The group itself must not enable any: it will hold processes.
			if got, _ := os.ReadFile(filepath.Join(root, "gaol/r1/cgroup.subtree_control")); len(got) > len(none) {
				t.Errorf("the group itself: %q", got)
			}
		})
	}
}

func TestV2EnableErrors(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"parent with processes", map[string]string{"cgroup.subtree_control": "cpu memory pids\n", "gaol/cgroup.type": "domain\n", "gaol/cgroup.procs": "42\n"}, "group /gaol holds processes (42 is one)"},
		{"not delegated", map[string]string{"cgroup.subtree_control": "cpu\n", "gaol/cgroup.type": "domain\n", "gaol/cgroup.procs": ""}, "Delegate=yes"},
		{"a real root may hold processes", map[string]string{"cgroup.procs": "1\n"}, "Delegate=yes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			// No cgroup.subtree_control: enabling fails.
			fakeFiles(t, root, map[string]string{"gaol/r1/cgroup.controllers": "\n"})
			fakeFiles(t, root, test.files)
			_, err := newV2Group(root)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func newV2Group(root string) (*Group, error) {
	return newGroup(newV2(root, controllersV2), "/gaol/r1", Limits{})
}
