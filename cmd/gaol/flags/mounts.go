package flags

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gaol/runtime"
)

var accesses = map[string]runtime.Access{"ro": runtime.ReadOnly, "rw": runtime.ReadWrite, "cow": runtime.CopyOnWrite}

// addMount parses a value of --mount.
func (f *Sandbox) addMount(s string) error {
	m, err := parseMount(s)
	if err == nil {
		f.options.Mounts = append(f.options.Mounts, m)
	}
	return err
}

func parseMount(s string) (m runtime.Mount, err error) {
	parts := strings.Split(s, ":")
	if n := len(parts); n > 2 {
		if access, ok := accesses[parts[n-1]]; ok {
			m.Access, parts = access, parts[:n-1]
		}
	}
	last := len(parts) - 1
	// The host's path may contain colons: the last part is the guest's.
	m.Source, m.Target = strings.Join(parts[:last], ":"), parts[last]
	if m.Source == "" || !strings.HasPrefix(m.Target, "/") {
		return m, errors.New("want HOST:GUEST, or HOST:GUEST:ro, :rw or :cow, with an absolute path in the guest")
	}
	m.Source, err = filepath.Abs(m.Source)
	return m, err
}

// maxFile is the longest file of the host that --file reads into memory. Longer ones are
// better shown by --mount, which copies nothing.
const maxFile = 256 << 20

// addFile parses a value of --file and reads the file.
func (f *Sandbox) addFile(s string) error {
	guest, host, found := strings.Cut(s, "=")
	if !found || !strings.HasPrefix(guest, "/") || host == "" {
		return errors.New("want GUEST=HOST: an absolute path in the guest, and a file of the host")
	}
	if _, twice := f.options.Files[guest]; twice {
		return fmt.Errorf("%s is given twice", guest)
	}
	text, err := ReadFile(host, maxFile, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", host, err)
	}
	f.options.Files[guest] = text
	return nil
}

// addVariable parses a value of --env. The last one of a name counts. Unlike docker, gaol does not copy a
// variable from its environment: the guest sees nothing of the host that is not written out.
func (f *Sandbox) addVariable(s string) error {
	name, text, found := strings.Cut(s, "=")
	if !found || name == "" {
		return errors.New("want NAME=VALUE")
	}
	f.options.Env[name] = text
	return nil
}
