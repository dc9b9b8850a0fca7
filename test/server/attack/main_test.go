package attack

import (
	"os"
	"testing"

	"gaol/internal/internettest"
	"gaol/test/harness"
)

func TestMain(m *testing.M) { os.Exit(internettest.Main(func() int { return harness.RunTests(m) })) }
