package runtime

import (
	"errors"
	"testing"

	"gaol/rootfs"
)

func TestLauncherCheck(t *testing.T) {
	for _, tc := range []struct {
		launcher Launcher
		node     string
		ok       bool
	}{
		{LauncherExec, "26.10.0", true},
		{LauncherZygote, "22.22.0", true},
		{LauncherZygote, "24.21.0", true},
		{LauncherZygote, "26.10.0", false},
		{LauncherZygote, "", false},
	} {
		err := tc.launcher.check(&rootfs.Image{Node: tc.node})
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v with Node %q: %v", tc.launcher, tc.node, err)
		}
	}
}
