package attack

import (
	"os"
	"testing"

	"gaol/test/harness"
	"gaol/test/internettest"
)

func TestMain(m *testing.M) { os.Exit(internettest.Main(func() int { return harness.RunTests(m) })) }
