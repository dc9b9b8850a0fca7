package lifecycle

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"gaol/test/harness"
)

// hostProgram is this test binary as another program that uses the SDK.
func hostProgram(t *testing.T, mode string, args ...string) *exec.Cmd {
	t.Helper()
	host := exec.Command("/proc/self/exe", args...)
	host.Env = append(os.Environ(), hostMode+"="+mode, harness.ParentVar+"="+harness.Parent)
	return host
}

// hostMode selects what this test binary does instead of running tests.
const hostMode = "GAOL_TEST_HOST"

func init() {
	switch os.Getenv(hostMode) {
	case "busy":
		runBusyHost()
	case "next": // runs tests
		if err := mountState(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "short":
		runShortHost()
		os.Exit(0)
	case "starved":
		runStarvedHost()
		os.Exit(0)
	case "chroot":
		runChrootedHost()
		os.Exit(0)
	case "storm":
		runStormHost()
		os.Exit(1)
	case "crowd":
		runCrowdHost()
		os.Exit(0)
	case "paused":
		runPausedHost()
	case "killer":
		runKillerHost()
		os.Exit(0)
	case "victim":
		runVictimHost()
		os.Exit(0)
	}
}
