package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gaol/rootfs/programs"
)

// MissingError lists dependencies of a build that are missing on the host.
type MissingError struct {
	Missing  []string // such as "busybox (static)"
	Packages []string // the Debian packages that provide it, in the same order
}

// Error is one line that ends with the command to install the packages.
func (e *MissingError) Error() string {
	return fmt.Sprintf("the host lacks %s: apt-get install %s",
		strings.Join(e.Missing, ", "), strings.Join(e.Packages, " "))
}

// ErrNoApt is the error of a build with Debian packages on another distribution.
var ErrNoApt = errors.New("the host lacks apt-get and dpkg-deb, which install bash, git and other Debian packages into images: " +
	"build an image without them with gaol image build --minimal, and use it with --image minimal")

// CheckHost reports missing requirements of this host for building the default image, as a build
// does before it downloads anything. The error is a [*MissingError], ErrNoApt, or another one.
func CheckHost() error {
	b := &build{store: &Store{in: pinned()}}
	return errors.Join(b.prepare(context.Background(), BuildOptions{}), b.close())
}

// checkHost collects everything that is missing for a build, or for an import if o is nil, into one error. Imported
// images get the programs that start a jail, too. Prebuilt ones need nothing of the host, but must be from the same
// sources as this gaol.
func (in *inputs) checkHost(o *BuildOptions) error {
	var e MissingError
	if in.programs.Prebuilt == nil {
		_, noCompiler := exec.LookPath("cc")
		e.need(programs.IsStatic(in.programs.Reaper), "catatonit (static)", "catatonit")
		e.need(noCompiler == nil, "cc", "gcc")
		libc, err := exec.Command("cc", "-print-file-name=libc.a").Output() // without one, it prints the bare name
		e.need(err == nil && filepath.IsAbs(strings.TrimSpace(string(libc))), "a static C library", "libc6-dev")
		e.need(o == nil || programs.IsStatic(in.programs.Busybox), "busybox (static)", "busybox-static")
	} else if err := in.programs.Check(); err != nil {
		return err
	}
	switch {
	case o == nil:
	case o.Minimal || in.packages == nil:
		e.need(exists(filepath.Join(in.zoneinfo, "Europe/Berlin")), "time zones", "tzdata")
		e.need(exists(in.certs), "CA certificates", "ca-certificates")
	case !exists(in.aptGet) || !exists(in.dpkgDeb):
		return ErrNoApt
	}
	if e.Missing == nil {
		return nil
	}
	return &e
}

// need adds what, which the Debian package pkg provides, unless it was found.
func (e *MissingError) need(found bool, what, pkg string) {
	if !found {
		e.Missing = append(e.Missing, what)
		e.Packages = append(e.Packages, pkg)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
