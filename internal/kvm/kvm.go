package kvm

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Device is the path of the kernel's interface.
const Device = "/dev/kvm"

// timeout is how long the machine may run: it needs less than a millisecond.
const timeout = 2 * time.Second

// Errors of Probe. It also returns errors of system calls.
var (
	errHung   = errors.New("KVM does not run a 64-bit guest: it has not ended in time")
	errResult = errors.New("KVM does not run a 64-bit guest: its result is wrong")
	errGroup  = errors.New(Device + " may be used by root only: chgrp kvm and chmod g+rw " + Device)
)

// Probe returns the group whose processes may use KVM, or an error if there is none or KVM does not work. It asks only once.
var Probe = sync.OnceValues(func() (group uint32, err error) {
	info, err := os.Stat(Device)
	if err != nil {
		return 0, err
	}
	const read, write = 0o040, 0o020
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Mode&read == 0 || stat.Mode&write == 0 {
		return 0, errGroup
	}
	if err := run(); err != nil {
		return 0, fmt.Errorf("%s: %w", Device, err)
	}
	return stat.Gid, nil
})
