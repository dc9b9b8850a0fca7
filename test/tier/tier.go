package tier

import (
	"os"
	"testing"
)

// Soak marks a test that takes long: it repeats something, builds programs, or uses a browser.
func Soak(t testing.TB) {
	t.Helper()
	leaveOut(t, "make soak runs this test")
}

// Alone marks a test that measures the whole machine, which other tests disturb. make soak runs it alone, and sets
// how many runs or kills it makes.
func Alone(t testing.TB) {
	t.Helper()
	leaveOut(t, "make soak runs this test, alone")
}

// Fleet marks a test that breaks or measures a fleet for minutes.
func Fleet(t testing.TB) {
	t.Helper()
	if leaveOut(t, "make test-fleet runs this test"); os.Getenv("GAOL_TEST_CHAOS") == "" {
		t.Skip("make test-fleet runs this test")
	}
}

// Packages marks a test that downloads hundreds of megabytes.
func Packages(t testing.TB) {
	t.Helper()
	leaveOut(t, "make packages runs this test")
}

// Judge marks a test that compares times, which other tests disturb.
func Judge(t testing.TB) {
	t.Helper()
	leaveOut(t, "make attack runs this test")
}

func leaveOut(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip(reason)
	}
}
