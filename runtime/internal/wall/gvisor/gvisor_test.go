package gvisor

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"gaol/runtime/internal/sandbox"
)

// The agent sees its program, images and folders without the right to write, except for those that the guest may write to.
func TestConfig(t *testing.T) {
	spec := &sandbox.Spec{
		Image: "/store/a", Warm: &sandbox.Warm{Image: "/store/b"},
		Mounts: []sandbox.Mount{{Access: sandbox.ReadOnly}, {Access: sandbox.ReadWrite}, {Access: sandbox.CopyOnWrite}},
	}
	c := config("/dir", "/bin/gaol", spec)
	want := map[string]string{
		"/gaol": "/bin/gaol ro", "/store/a": "/dir/mounts/image0 ro", "/store/b": "/dir/mounts/image1 ro",
		"/mounts/0": "/dir/mounts/0 ro", "/mounts/1": "/dir/mounts/1 rw", "/mounts/2": "/dir/mounts/2 ro",
	}
	for _, m := range c.Mounts {
		if m.Type != "bind" {
			continue
		}
		if got := m.Source + " " + strings.Join(slices.DeleteFunc(m.Options, func(o string) bool { return o == "bind" }), " "); got != want[m.Destination] {
			t.Errorf("%s: %s, want %s", m.Destination, got, want[m.Destination])
		}
		delete(want, m.Destination)
	}
	if len(want) > 0 {
		t.Errorf("%v are missing", want)
	}
	if spec.Warm.Image = spec.Image; len(images(spec)) != 1 {
		t.Errorf("%q", images(spec))
	}
}

// Sockets of the host are reachable only if the options allow them beside mounts that show files of the host.
func TestHostSockets(t *testing.T) {
	shown, copied := []sandbox.Mount{{Access: sandbox.ReadWrite}}, []sandbox.Mount{{Access: sandbox.CopyOnWrite}, {Access: sandbox.ReadOnly, Overlay: true}}
	for _, tc := range []struct {
		spec sandbox.Spec
		want bool
	}{
		{sandbox.Spec{}, false},
		{sandbox.Spec{Mounts: shown}, false},
		{sandbox.Spec{UnixSockets: true}, false},
		{sandbox.Spec{UnixSockets: true, Mounts: copied}, false},
		{sandbox.Spec{UnixSockets: true, Mounts: shown}, true},
	} {
		if list := arguments("/dir", &tc.spec); slices.Contains(list, "--host-uds=open") != tc.want {
			t.Errorf("%+v: %q", tc.spec, list)
		}
	}
}

// The limits of a sandbox are those of its runs, with what gVisor and the tree need.
func TestLimits(t *testing.T) {
	spec := &sandbox.Spec{Disk: 10 << 20, Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 16}}
	for runs, want := range map[int]sandbox.Limits{
		0: {Memory: overheadMemory + 74<<20, CPUs: 1, Pids: overheadPids + 16},
		1: {Memory: overheadMemory + 74<<20, CPUs: 0.5, Pids: overheadPids + 16},
		4: {Memory: overheadMemory + 266<<20, CPUs: 2, Pids: overheadPids + 64},
	} {
		if got := limits(spec, runs); got != want {
			t.Errorf("%d runs: %+v, want %+v", runs, got, want)
		}
	}
}

// Only mounted files have a path for the agent.
func TestPlace(t *testing.T) {
	var files []*os.File
	for range 3 {
		f, err := os.Open("/")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	m := &machine{mounts: []sandbox.Mount{{Source: files[0]}, {Source: files[1]}}}
	for i, want := range []string{"/mounts/0", "/mounts/1", ""} {
		if got, err := m.place(fs.File(files[i])); got != want || (err == nil) != (want != "") {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
}
