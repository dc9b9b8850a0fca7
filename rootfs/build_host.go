package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gaol/rootfs/sharedlib"
)

// MissingError lists what a build needs from the host and did not find.
type MissingError struct {
	Missing  []string // such as "busybox (static)"
	Packages []string // the Debian packages that provide it, in the same order
}

// Error is one line that ends with the command to install the packages.
func (e *MissingError) Error() string {
	return fmt.Sprintf("the host lacks %s: apt-get install %s",
		strings.Join(e.Missing, ", "), strings.Join(e.Packages, " "))
}

var errNoApt = errors.New("the host lacks apt-get and dpkg-deb, which install bash, git and other Debian packages into images: " +
	"build an image without them with gaol image build --minimal, and use it with --image minimal")

// CheckHost reports what this host lacks for building the default image. The error is
// a [*MissingError], or says that the host has no apt.
func CheckHost() error {
	in := pinned()
	return in.checkHost(BuildOptions{})
}

// checkHost collects everything that is missing into one error.
func (in *inputs) checkHost(o BuildOptions) error {
	e := in.lacks()
	e.need(sharedlib.IsStatic(in.busybox), "busybox (static)", "busybox-static")
	switch {
	case o.Minimal || in.packages == nil:
		e.need(exists(filepath.Join(in.zoneinfo, "Europe/Berlin")), "time zones", "tzdata")
		e.need(exists(in.certs), "CA certificates", "ca-certificates")
	case !exists(in.aptGet) || !exists(in.dpkgDeb):
		return errNoApt
	}
	return e.orNil()
}

// lacks reports the missing sources of the programs that start a jail. Imported images get
// these programs, too.
func (in *inputs) lacks() *MissingError {
	var e MissingError
	_, noCompiler := exec.LookPath("cc")
	e.need(sharedlib.IsStatic(in.reaper), "catatonit (static)", "catatonit")
	e.need(noCompiler == nil, "cc", "gcc")
	e.need(hasStaticLibc(), "a static C library", "libc6-dev")
	return &e
}

// need adds what the Debian package pkg provides, unless it was found.
func (e *MissingError) need(found bool, what, pkg string) {
	if !found {
		e.Missing = append(e.Missing, what)
		e.Packages = append(e.Packages, pkg)
	}
}

func (e *MissingError) orNil() error {
	if e.Missing == nil {
		return nil
	}
	return e
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// hasStaticLibc asks the compiler for libc.a. Without one, it prints the bare name.
func hasStaticLibc() bool {
	out, err := exec.Command("cc", "-print-file-name=libc.a").Output()
	return err == nil && filepath.IsAbs(strings.TrimSpace(string(out)))
}

// compile compiles C source to the file out.
func compile(ctx context.Context, source, out string, flags ...string) error {
	// Source from standard input, and no symbols: the result must not depend on the folder
	// in which it is compiled.
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-s", "-x", "c", "-", "-o", out}, flags...)
	cmd := exec.CommandContext(ctx, "cc", args...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("cc: %w: %s", err, firstError(string(out)))
	}
	return nil
}

// firstError returns the first error line of a compiler's output.
func firstError(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "error:") })
	return lines[max(at, 0)]
}
