//go:build !amd64

package vm

import (
	"errors"
	"fmt"
)

// tscFrequency returns an error: the machine is a PC.
func tscFrequency() (uint64, error) {
	return 0, fmt.Errorf("virtual machines need a processor of the x86-64 family: %w", errors.ErrUnsupported)
}
