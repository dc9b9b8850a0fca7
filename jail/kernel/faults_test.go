package kernel

import (
	"os"
	"testing"
)

// Linux has none of the faults.
func TestCheckFaults(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	if err := CheckFaults(); err != nil {
		t.Error(err)
	}
}
