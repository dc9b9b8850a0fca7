package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/internal/ociruntime"
	"gaol/jail/cgroup"
)

// The tests use crun, because gaol also looks for runc beside the running program.
func TestProbeIsolation(t *testing.T) {
	const script = "#!/bin/sh\n"
	for _, tc := range []struct {
		name, program string
		mode          os.FileMode
		detail, cure  string
	}{
		{"none", "", 0, "not found", "apt-get install crun"},
		{"writable", script, 0o777, "can be written by other users", "apt-get install crun"},
		{"broken", script + "echo one >&2; echo two >&2; exit 3\n", 0o755, `--version: exit status 3: "one"`, "apt-get install crun"},
		{"old", script + "case $1 in --version) echo crun version 1.4; echo +SECCOMP;; *) exit 1; esac\n", 0o755, "crun 1.4, /", ""}, // this machine's cgroups may be refused, too
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			file := filepath.Join(dir, "crun")
			if tc.program != "" {
				if err := os.WriteFile(file, []byte(tc.program), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(file, tc.mode); err != nil { // whatever the umask is
					t.Fatal(err)
				}
			}
			got := isolation("crun").probe(&examination{ctx: t.Context()})
			if got.Status != Optional || !strings.Contains(got.Detail, tc.detail) || !strings.Contains(got.Cure, tc.cure) {
				t.Errorf("got %+v, want %q, cure %q", got, tc.detail, tc.cure)
			}
		})
	}
}

func TestRuntimeFinding(t *testing.T) {
	runc := ociruntime.Info{Name: "runc", Version: "1.5.2", Seccomp: true, CgroupV1: true, CgroupV2: true, Tested: true}
	change := func(f func(*ociruntime.Info)) ociruntime.Info {
		info := runc
		f(&info)
		return info
	}
	crun := change(func(i *ociruntime.Info) { i.Name = "crun" })
	noV1 := change(func(i *ociruntime.Info) { i.CgroupV1 = false })
	noV2 := change(func(i *ociruntime.Info) { i.CgroupV2 = false })
	hugetlb := []string{"hugetlb", "misc"}
	for _, tc := range []struct {
		name    string
		info    ociruntime.Info
		version cgroup.Version
		unified []string
		detail  string
		cure    string // empty: the runtime can be used
	}{
		{"v1", runc, cgroup.V1, nil, "runc 1.5.2, /x, with seccomp and cgroup v1", ""},
		{"v2", runc, cgroup.V2, nil, "runc 1.5.2, /x, with seccomp and cgroup v2", ""},
		{"runc, both", runc, cgroup.V1, hugetlb, "cgroup v1", ""},
		{"crun, v1", crun, cgroup.V1, nil, "crun 1.5.2, /x, with seccomp and cgroup v1", ""},
		{"crun, v2", crun, cgroup.V2, nil, "cgroup v2", ""},
		{"crun, both", crun, cgroup.V1, hugetlb, "if v2 has controllers: hugetlb, misc", "systemd.unified_cgroup_hierarchy=1, or use runc"},
		{"crun, a folder named unified in v2", crun, cgroup.V2, hugetlb, "cgroup v2", ""},
		{"no v1", noV1, cgroup.V1, nil, "does not support this machine's cgroup v1", "another runtime"},
		{"no v1, on v2", noV1, cgroup.V2, nil, "cgroup v2", ""},
		{"no v2", noV2, cgroup.V2, nil, "does not support this machine's cgroup v2", "another runtime"},
		{"no v2, on v1", noV2, cgroup.V1, nil, "cgroup v1", ""},
		{"no seccomp", change(func(i *ociruntime.Info) { i.Seccomp = false }), cgroup.V2, nil, "without seccomp", "make build"},
		{"old", change(func(i *ociruntime.Info) { i.Tested = false }), cgroup.V2, nil, "not tested", "runc 1.2"},
		{"no version", ociruntime.Info{Name: "kata", Seccomp: true, CgroupV2: true}, cgroup.V2, nil, "kata, /x, ", "crun 1.8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := Optional
			if tc.cure == "" {
				want = OK
			}
			got := runtimeFinding("/x", tc.info, tc.version, tc.unified)
			if got.Status != want || !strings.Contains(got.Detail, tc.detail) || !strings.Contains(got.Cure, tc.cure) || (got.Cure == "") != (want == OK) {
				t.Errorf("got %+v, want %s, %q, cure %q", got, want, tc.detail, tc.cure)
			}
		})
	}
}

// Only a file system of type cgroup2 counts: this test uses the machine's, which v1 alone does not have.
func TestUnifiedControllers(t *testing.T) {
	dir := t.TempDir()
	if got := unifiedControllers(dir); got != nil {
		t.Errorf("got %v of no folder", got)
	}
	link := filepath.Join(dir, "unified")
	if err := os.Mkdir(link, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(link, "cgroup.controllers"), []byte("cpu\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := unifiedControllers(dir); got != nil {
		t.Errorf("got %v of a common folder", got)
	}
	if err := os.RemoveAll(link); err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(mountTable(t)) {
		place, kind, _ := strings.Cut(line, " - ")
		if strings.HasPrefix(kind, "cgroup2 ") {
			mounted := strings.Fields(place)[4]
			text, err := os.ReadFile(filepath.Join(mounted, "cgroup.controllers"))
			if err != nil {
				t.Fatal(err)
			}
			want = strings.Fields(string(text))
			if err := os.Symlink(mounted, link); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if got := unifiedControllers(dir); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
