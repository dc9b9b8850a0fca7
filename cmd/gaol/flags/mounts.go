package flags

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"gaol/runtime"
)

var accesses = map[string]runtime.Access{"ro": runtime.ReadOnly, "rw": runtime.ReadWrite, "cow": runtime.CopyOnWrite}

var errMount = errors.New("want HOST:GUEST, or HOST:GUEST:ro, :rw or :cow, with an absolute path in the guest")

// mounts returns a flag for mounts.
func mounts(target *[]runtime.Mount) pflag.Value {
	return List(target, "HOST:GUEST[:ro|rw|cow]", func(s string) ([]runtime.Mount, error) {
		m, err := parseMount(s)
		if err != nil {
			return nil, err
		}
		return []runtime.Mount{m}, nil
	})
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
		return m, errMount
	}
	m.Source, err = filepath.Abs(m.Source)
	return m, err
}

// maxFile is the longest file of the host that --file reads into memory. Longer ones are
// better shown by --mount, which copies nothing.
const maxFile = 256 << 20

// files returns a flag that reads files of the host, by the path that each gets in
// the guest.
func files(target *map[string][]byte) pflag.Value {
	return entries(target, "GUEST=HOST", func(s string) (guest string, text []byte, err error) {
		guest, host, found := strings.Cut(s, "=")
		if !found || !strings.HasPrefix(guest, "/") || host == "" {
			return "", nil, errors.New("want GUEST=HOST: an absolute path in the guest, and a file of the host")
		}
		if _, twice := (*target)[guest]; twice {
			return "", nil, fmt.Errorf("%s is given twice", guest)
		}
		info, err := os.Stat(host)
		if err != nil {
			return "", nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxFile {
			return "", nil, fmt.Errorf("%s is not a file of at most %d MiB: show it by --mount", host, maxFile>>20)
		}
		text, err = os.ReadFile(host)
		return guest, text, err
	})
}
