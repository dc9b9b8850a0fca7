package cgroup

import "testing"

// What v1 leaves to the last attempts kills too, and leaves nothing frozen.
func TestV1KillByFreezing(t *testing.T) {
	for _, s := range subjects(t) {
		v, ok := s.on.(*v1)
		if !ok {
			continue
		}
		for _, n := range []int{0, plainKills} {
			g := s.group(t, Limits{})
			cmd := guest(t, g, "sleep")
			if empty, err := v.kill(g.path, n); empty || err != nil {
				t.Errorf("attempt %d: %v, %v", n, empty, err)
			}
			if cmd.Wait(); cmd.ProcessState.Success() {
				t.Errorf("attempt %d: it was not killed", n)
			}
			if state, err := readFile(v.dir("freezer", g.path) + "/freezer.state"); err != nil || string(state) != "THAWED\n" {
				t.Errorf("attempt %d: the group is %q, %v", n, state, err)
			}
		}
	}
}
