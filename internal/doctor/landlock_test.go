package doctor

import (
	"testing"

	"gaol/jail/landlock/audit"

	"golang.org/x/sys/unix"
)

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

func TestAuditFinding(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want Check
	}{
		{nil, ok("on: Landlock denials can be reported")},
		{&audit.UnavailableError{Reason: "off", Cure: "switch it on"}, ok("Landlock denials cannot be reported: off; switch it on")},
		{&audit.UnavailableError{Reason: "unreadable", Cure: "be root", Err: unix.EPERM},
			ok("Landlock denials cannot be reported: unreadable: operation not permitted; be root")},
	} {
		if got := auditFinding(tc.err); got != tc.want {
			t.Errorf("%v: %+v", tc.err, got)
		}
	}
}
