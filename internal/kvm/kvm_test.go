package kvm

import (
	"errors"
	"io/fs"
	"testing"
	"time"
)

// A machine ends with the right result, or there is an error in time.
func TestRun(t *testing.T) {
	began := time.Now()
	err := run()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	t.Log("KVM: ", err)
	if time.Since(began) > 2*timeout {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
