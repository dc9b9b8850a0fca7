package zygote

import (
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

func TestMain(m *testing.M) { harness.MainNeeding(m, runtime.FeatureZygote) }
