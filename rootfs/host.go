package rootfs

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// MissingError tells what a build needs of the host and did not find.
type MissingError struct {
	Missing  []string // what, such as "busybox (static)"
	Packages []string // the Debian packages that have it, in the same order
}

// Error is one line that ends in the cure.
func (e *MissingError) Error() string {
	return fmt.Sprintf("the host lacks %s: apt-get install %s",
		strings.Join(e.Missing, ", "), strings.Join(e.Packages, " "))
}

// errNoApt is what a host without apt can't build.
var errNoApt = errors.New("the host lacks apt-get and dpkg-deb, by which images get bash, git and other Debian packages: " +
	"build one without them by gaol image build --minimal, and use it by --image minimal")

// CheckHost reports what this host lacks for building the default image. The error is
// a [*MissingError], or one that says that there is no apt.
func CheckHost() error {
	in := pinned()
	return in.checkHost(BuildOptions{})
}

// checkHost looks for everything at once: one message, one cure.
func (in *inputs) checkHost(o BuildOptions) error {
	needs := append(in.starters(), need{"busybox (static)", "busybox-static", static(in.busybox)})
	switch {
	case o.Minimal || in.packages == nil:
		needs = append(needs,
			need{"time zones", "tzdata", exists(filepath.Join(in.zoneinfo, "Europe/Berlin"))},
			need{"CA certificates", "ca-certificates", exists(in.certs)})
	case !exists(in.aptGet) || !exists(in.dpkgDeb):
		return errNoApt
	}
	return missing(needs)
}

// starters are the needs of what starts a jail, which imported images get too.
func (in *inputs) starters() []need {
	return []need{
		{"catatonit (static)", "catatonit", static(in.reaper)},
		{"cc", "gcc", hasCompiler()},
		{"a static C library", "libc6-dev", hasCompiler() && hasStaticLibc()},
	}
}

// need is something that the host must have, and the Debian package of it.
type need struct {
	what, pkg string
	found     bool
}

func missing(needs []need) error {
	var e MissingError
	for _, need := range needs {
		if !need.found {
			e.Missing = append(e.Missing, need.what)
			e.Packages = append(e.Packages, need.pkg)
		}
	}
	if e.Missing == nil {
		return nil
	}
	return &e
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// static says whether path is a program that needs no loader and no library,
// which the tree may not have.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	return err == nil && len(libs) == 0 && interpreter(f) == ""
}

func hasCompiler() bool {
	_, err := exec.LookPath("cc")
	return err == nil
}

// hasStaticLibc asks the compiler, which prints a bare name if it has none.
func hasStaticLibc() bool {
	out, err := exec.Command("cc", "-print-file-name=libc.a").Output()
	return err == nil && filepath.IsAbs(strings.TrimSpace(string(out)))
}

// compileProgram makes the static program out from C source.
func compileProgram(ctx context.Context, source, out string) error {
	if err := compile(ctx, source, "-static", "-o", out); err != nil {
		return err
	}
	if !static(out) {
		return errors.New("cc: the program is not static")
	}
	return nil
}

// compileLibrary makes the shared object out from C source.
func compileLibrary(ctx context.Context, source, out string) error {
	return compile(ctx, source, "-shared", "-fPIC", "-o", out)
}

func compile(ctx context.Context, source string, flags ...string) error {
	// From standard input, and without symbols: the outcome must not depend on
	// where it was compiled.
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-s", "-x", "c", "-"}, flags...)
	cmd := exec.CommandContext(ctx, "cc", args...)
	cmd.Stdin = strings.NewReader(source)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("cc: %w: %s", err, firstError(stderr.String()))
	}
	return nil
}

// firstError picks the line of a compiler's output that says what is wrong.
func firstError(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if strings.Contains(line, "error:") {
			return line
		}
	}
	return lines[0]
}
