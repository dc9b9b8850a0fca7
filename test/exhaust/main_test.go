package exhaust

import (
	"testing"

	"gaol/test/harness"
)

func TestMain(m *testing.M) { harness.MainAlone(m) }
