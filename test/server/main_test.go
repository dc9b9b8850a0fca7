package server

import (
	"testing"

	"gaol/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
