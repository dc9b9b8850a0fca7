package mounts

import "testing"

func TestIsSince(t *testing.T) {
	for _, tc := range []struct {
		release string
		want    bool
	}{
		{"5.19.0", true}, {"5.19-rc1", true}, {"6.1.0-13-cloud-amd64", true}, {"10.0", true}, {"5.20+", true},
		{"5.18.19", false}, {"5.4.0-100-generic", false}, {"4.19.0", false}, {"", false}, {"5", false}, {"x.19", false}, {"5.x", false},
	} {
		if got := isSince(tc.release, 5, 19); got != tc.want {
			t.Errorf("isSince(%q): %v", tc.release, got)
		}
	}
}
