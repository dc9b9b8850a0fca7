package cgroup

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDetectVersion(t *testing.T) {
	v1Files := func(names ...string) map[string]string {
		files := map[string]string{}
		for _, n := range names {
			files[n+"/cgroup.procs"] = ""
		}
		return files
	}
	tests := []struct {
		name    string
		files   map[string]string
		want    Version
		missing *MissingError
	}{
		{"v2", map[string]string{"cgroup.controllers": "cpuset cpu io memory pids\n"}, V2, nil},
		{"v2 without pids", map[string]string{"cgroup.controllers": "cpu memory\n"}, V2, &MissingError{Version: V2, Controllers: []string{"pids"}}},
		{"v1", v1Files(controllersV1...), V1, nil},
		{"v1 beside an empty v2", v1Files(append([]string{"unified"}, controllersV1...)...), V1, nil},
		{"v1 without memory", v1Files("cpu", "cpuacct", "freezer", "pids"), V1, &MissingError{Version: V1, Controllers: []string{"memory"}}},
		{"nothing", nil, V1, &MissingError{Controllers: controllersV1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			fakeFiles(t, root, test.files)
			got, err := detect(root)
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
			missing, _ := errors.AsType[*MissingError](err)
			if test.missing != nil && missing != nil {
				if missing.Cure == "" || !strings.Contains(err.Error(), root) {
					t.Errorf("no cure or path: %v", err)
				}
				missing.Cure, missing.Path = "", ""
			}
			if diff := cmp.Diff(test.missing, missing); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	v, err := Detect()
	if err != nil || v != V1 && v != V2 {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestBadArguments(t *testing.T) {
	for _, path := range []string{"", "/", "gaol", "/gaol/", "/gaol/../..", "/a//b"} {
		if _, err := New(path, Limits{}); err == nil {
			t.Errorf("New(%q) succeeded", path)
		}
		if _, err := Open(path); err == nil {
			t.Errorf("Open(%q) succeeded", path)
		}
	}
	for _, l := range []Limits{{Memory: -1}, {CPUs: -1}, {Pids: -1}} {
		if _, err := New(testPath(), l); err == nil {
			t.Errorf("New with %+v succeeded", l)
		}
	}
}
