//go:build !amd64

package kvm

import "errors"

// run returns an error: QEMU's microvm is a PC.
func run() error { return errors.ErrUnsupported }
