package cgroup

import (
	"os"
	"testing"
)

// Only the first process of a container has a group that is neither the root nor systemd's.
func TestHome(t *testing.T) {
	const pod = "/kubepods.slice/kubepods-burstable.slice/cri-containerd-5f.scope"
	tests := []struct{ name, first, own, want string }{
		{"machine with systemd", "0::/init.scope\n", "0::/system.slice/gaol.service\n", ""},
		{"machine without systemd", "0::/\n", "0::/\n", ""},
		{"container with a cgroup namespace", "0::/\n", "0::/\n", ""},
		{"the same, after processes were moved", "0::/init.scope\n", "0::/init.scope\n", ""},
		{"privileged pod", "0::" + pod + "\n", "0::" + pod + "\n", pod},
		{"privileged pod, after processes were moved", "0::" + pod + "/init.scope\n", "0::" + pod + "/init.scope\n", pod},
		{"beside a v1 hierarchy", "1:name=systemd:/x\n0::" + pod + "\n", "1:name=systemd:/y\n0::" + pod + "/init.scope\n", pod},
		{"pid 1 outside of the namespace", "0::/../../init.scope\n", "0::/\n", ""},
		{"another container's pid 1", "0::" + pod + "\n", "0::/kubepods.slice/other\n", ""},
		{"similar name", "0::" + pod + "\n", "0::" + pod + "2\n", ""},
		{"group outside of the mount", "0::/docker/5f\n", "0::/docker/5f\n", ""},
		{"v1", "4:memory:/x\n", "4:memory:/x\n", ""},
	}
	root := t.TempDir()
	fakeFiles(t, root+pod, v2Group)
	fakeFiles(t, root+"/init.scope", v2Group)
	for _, test := range tests {
		dir := t.TempDir()
		fakeFiles(t, dir, map[string]string{"first": test.first, "own": test.own})
		if got, err := home(root, dir+"/first", dir+"/own"); got != test.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", test.name, got, err, test.want)
		}
	}
}

// The processes of the root move to one group, and a limit of the container ends none of them together with others.
func TestVacate(t *testing.T) {
	root := t.TempDir()
	fakeFiles(t, root, map[string]string{"cgroup.procs": "1\n", "memory.oom.group": "1\n", "init.scope/cgroup.procs": ""})
	for range 2 { // the group may exist
		if err := newV2(root, controllersV2).vacate(); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{"init.scope/cgroup.procs": "1", "memory.oom.group": "0"} {
		if got, err := os.ReadFile(root + "/" + file); string(got) != want {
			t.Errorf("%s: %q, %v; want %q", file, got, err, want)
		}
	}
}
