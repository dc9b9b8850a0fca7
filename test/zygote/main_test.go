package zygote

import (
	"testing"

	"gaol/runtime/isolation"
	"gaol/test/harness"
)

func TestMain(m *testing.M) { harness.MainNeeding(m, isolation.Zygote) }
