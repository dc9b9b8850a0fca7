package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gaol/runtime"
)

// mounts are HOST:GUEST[:ACCESS], each.
type mounts []runtime.Mount

var accesses = map[string]runtime.Access{"ro": runtime.ReadOnly, "rw": runtime.ReadWrite, "cow": runtime.CopyOnWrite}

var errMount = errors.New("want HOST:GUEST, or HOST:GUEST:ro, :rw or :cow, with an absolute path in the guest")

// Set implements pflag.Value.
func (v *mounts) Set(s string) error {
	parts := strings.Split(s, ":")
	m := runtime.Mount{}
	if n := len(parts); n > 2 {
		access, ok := accesses[parts[n-1]]
		if ok {
			m.Access, parts = access, parts[:n-1]
		}
	}
	if len(parts) < 2 {
		return errMount
	}
	// Of several colons the last parts: no guest path begins with anything but a slash.
	m.Source, m.Target = strings.Join(parts[:len(parts)-1], ":"), parts[len(parts)-1]
	if m.Source == "" || !strings.HasPrefix(m.Target, "/") {
		return errMount
	}
	var err error
	m.Source, err = filepath.Abs(m.Source)
	*v = append(*v, m)
	return err
}

// String implements pflag.Value.
func (v *mounts) String() string {
	var list []string
	for _, m := range *v {
		list = append(list, m.Source+":"+m.Target)
	}
	return strings.Join(list, " ")
}

// Type implements pflag.Value.
func (*mounts) Type() string { return "HOST:GUEST[:ro|rw|cow]" }

// guestFiles are GUEST=HOST, each: where in the guest, and the file of the host that is
// read for it.
type guestFiles map[string][]byte

// maxFile bounds a file of the host that is read into memory.
const maxFile = 256 << 20

var errFile = errors.New("want GUEST=HOST: an absolute path in the guest, and a file of the host")

// Set implements pflag.Value.
func (v *guestFiles) Set(s string) error {
	guest, host, found := strings.Cut(s, "=")
	if !found || !strings.HasPrefix(guest, "/") || host == "" {
		return errFile
	}
	if _, twice := (*v)[guest]; twice {
		return fmt.Errorf("%s is given twice", guest)
	}
	info, err := os.Stat(host)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("%s is no file of at most %d MiB: show it by --mount", host, maxFile>>20)
	}
	text, err := os.ReadFile(host)
	if err != nil {
		return err
	}
	if *v == nil {
		*v = guestFiles{}
	}
	(*v)[guest] = text
	return nil
}

// String implements pflag.Value.
func (v *guestFiles) String() string { return strings.Join(slices.Sorted(maps.Keys(*v)), " ") }

// Type implements pflag.Value.
func (*guestFiles) Type() string { return "GUEST=HOST" }
