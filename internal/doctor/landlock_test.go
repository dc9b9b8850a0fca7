package doctor

import "testing"

func TestLandlockFinding(t *testing.T) {
	const cure = "boot a kernel of version 6.12 or later"
	for _, tc := range []struct {
		abi  int
		want Check
	}{
		{8, ok("ABI 8")},
		{7, ok("ABI 7")},
		{6, ok("ABI 6")},
		{5, degraded("ABI 5 without scopes for signals and abstract unix sockets (ABI 6)", cure)},
		{1, degraded("ABI 1 without renames and links from folder to folder (ABI 2), a right to truncate files (ABI 3), "+
			"rights to TCP ports (ABI 4), a right to send devices commands (ABI 5), "+
			"scopes for signals and abstract unix sockets (ABI 6)", cure)},
	} {
		if got := landlockFinding(tc.abi); got != tc.want {
			t.Errorf("ABI %d: %+v", tc.abi, got)
		}
	}
}
