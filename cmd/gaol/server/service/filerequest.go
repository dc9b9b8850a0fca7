package service

import (
	"io/fs"
	"strconv"

	"gaol/vfs/hostfs"
)

// modeBits returns the permissions, zero for the default.
func modeBits(m FileMode) (fs.FileMode, error) {
	if m.Mode == "" {
		return 0, nil
	}
	bits, err := strconv.ParseUint(m.Mode, 8, 16)
	if err != nil || bits == 0 || bits > 0o777 {
		return 0, refuse(Invalid, "mode: want 1 to 777, in octal")
	}
	return fs.FileMode(bits), nil
}

// writeOptions returns the request as package hostfs has it.
func writeOptions(w FileWrite) (hostfs.WriteOptions, error) {
	mode, err := modeBits(w.FileMode)
	return hostfs.WriteOptions{Mode: mode, Parents: w.Parents}, err
}
