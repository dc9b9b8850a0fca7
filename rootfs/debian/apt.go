package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/rootfs/download"
)

// aptConfig is read after the host's configuration, which names the proxies. It removes the
// host's hooks, and restricts a source's indexes to the packages.
const aptConfig = `#clear APT::Update;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {
	MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages";
	flatMetaKey "Packages";
	ShortDescription "Packages";
	Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages";
	Optional "0";
};
#clear APT::Architectures;
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Update::Error-Mode "any";
Acquire::ForceHash "SHA256";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
`

// Apt runs the programs of the host's apt.
type Apt struct {
	Options []string // of every program, such as those for a private state
	Dir     string   // working directory; empty: that of this process
}

// Run runs a program of apt, such as "apt-get", and returns its output. The error contains the
// program's first error message.
func (a *Apt) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, append(slices.Clone(a.Options), args...)...)
	cmd.Dir, cmd.Env = a.Dir, append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", filepath.Base(program), err, firstError(stderr.String()))
	}
	return out, nil
}

// firstError returns ": " and the first error line of apt-get's output.
func firstError(text string) string {
	for line := range strings.Lines(text) {
		if message, isError := strings.CutPrefix(strings.TrimSpace(line), "E: "); isError {
			return ": " + message
		}
	}
	return ""
}

// apt is an Apt with a private state, in which only stubs are installed.
type apt struct {
	Apt
	o    Options
	perl bool // the packages include Perl
}

// newApt makes the private state. What later builds need again goes to o.Keep, and the rest
// to o.Temp.
func newApt(o Options) (*apt, error) {
	a := &apt{o: o}
	lists := filepath.Join(o.Keep, "lists")
	// apt-get fails without a folder "partial" in each folder that it may download to.
	for _, parent := range []string{lists, a.packages(), o.Temp} {
		if err := os.MkdirAll(filepath.Join(parent, "partial"), 0o755); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(o.Temp, "conf")
	if err := errors.Join(os.WriteFile(config, []byte(aptConfig), 0o644), os.WriteFile(a.status(), nil, 0o644)); err != nil {
		return nil, err
	}
	a.Options = []string{"-qq", "-y", "-c", config,
		"-o", "Dir::State=" + o.Keep, "-o", "Dir::State::lists=" + lists,
		"-o", "Dir::State::status=" + a.status(), "-o", "Dir::Cache=" + o.Keep,
	}
	return a, nil
}

// status is the file that lists the installed packages.
func (a *apt) status() string { return filepath.Join(a.o.Temp, "status") }

// packages is the folder of downloaded packages.
func (a *apt) packages() string { return filepath.Join(a.o.Keep, "packages") }

// run runs apt-get.
func (a *apt) run(ctx context.Context, args ...string) ([]byte, error) {
	return a.Run(ctx, a.o.AptGet, args...)
}

// resolve returns the packages and their dependencies, sorted by name. It updates the
// package lists first, and falls back to the existing ones without a network.
func (a *apt) resolve(ctx context.Context) ([]Package, error) {
	a.o.Report.Line("fetch the lists of Debian packages")
	_, stale := a.run(ctx, "-o", "pkgCacheFile::Generate=false", "update")
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	found, err := a.closure(ctx)
	if err != nil {
		if stale != nil {
			err = fmt.Errorf("%w; %w", stale, err)
		}
		return nil, err
	}
	if stale != nil {
		a.o.Report.Line("use the existing package lists: %v", stale)
	}
	return found, nil
}

// closure is resolve with the existing package lists.
func (a *apt) closure(ctx context.Context) ([]Package, error) {
	leftOut := slices.Concat(stubs, defaultStubs)
	if len(a.o.With) > 0 {
		named := func(s stub) bool { return slices.Contains(a.o.With, s.name) }
		needed, err := a.list(ctx, slices.DeleteFunc(slices.Clone(stubs), named), a.o.With)
		if err != nil {
			return nil, err
		}
		// apt-get also accepts patterns, virtual packages and packages to remove.
		for _, name := range a.o.With {
			if !contains(needed, name) {
				return nil, fmt.Errorf("%s is not the name of a package in the sources of this machine's apt", name)
			}
		}
		leftOut = slices.DeleteFunc(leftOut, func(s stub) bool { return contains(needed, s.name) })
	}
	found, err := a.list(ctx, leftOut, slices.Concat(a.o.Packages, a.o.With))
	a.perl = contains(found, "perl-base")
	return found, err
}

func contains(all []Package, name string) bool {
	return slices.ContainsFunc(all, func(p Package) bool { return p.Name == name })
}

// list returns packages and their dependencies, sorted by name, if the stubs are installed.
func (a *apt) list(ctx context.Context, installed []stub, names []string) (found []Package, err error) {
	// The version is newer than any that a dependency asks for. "Multi-Arch: foreign" lets a
	// stub satisfy packages of each architecture.
	var status strings.Builder
	for _, s := range installed {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: foreign\nVersion: 9999:0\n\n", s.name)
	}
	if err := os.WriteFile(a.status(), []byte(status.String()), 0o644); err != nil {
		return nil, err
	}
	out, err := a.run(ctx, install(names, a.o.Temp, "--print-uris")...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		m := packageForm().FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("apt-get: unexpected line %.200q", line)
		}
		version, badVersion := url.PathUnescape(m[3])
		size, err := strconv.ParseInt(m[5], 10, 64)
		if err := errors.Join(badVersion, err); err != nil {
			return nil, err
		}
		found = append(found, Package{Name: m[2], Version: version, Arch: m[4], SHA256: m[6], file: m[1], size: size})
	}
	slices.SortFunc(found, func(x, y Package) int { return strings.Compare(x.file, y.file) })
	return found, nil
}

// packageForm matches a line of apt-get --print-uris: address, file name, size and hash.
var packageForm = lazyregexp.New(`^'[^']*' (([a-z0-9][a-z0-9+.-]*)_([A-Za-z0-9.+~%-]+)_([a-z0-9]+)\.deb) ([0-9]{1,12}) SHA256:([0-9a-f]{64})\s*$`)

// install returns the arguments that install packages, with downloads in a folder.
func install(names []string, downloads string, options ...string) []string {
	options = append(options, "-o", "Dir::Cache::archives="+downloads, "install", "--")
	return append(options, names...)
}

// missing counts the packages that have to be downloaded, and their bytes. It removes
// damaged files, because apt-get accepts any file of the right size.
func (a *apt) missing(found []Package) (count int, size int64, err error) {
	for _, p := range found {
		f, err := a.open(p)
		if err == nil {
			f.Close()
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, download.ErrIntegrity) {
			return 0, 0, err
		}
		if err := os.Remove(filepath.Join(a.packages(), p.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		count++
		size += p.size
	}
	return count, size, nil
}

// download downloads the missing ones of the packages.
func (a *apt) download(ctx context.Context, found []Package) error {
	count, size, err := a.missing(found)
	if count == 0 || err != nil {
		return err
	}
	a.o.Report.Fetch(fmt.Sprintf("%d Debian packages", count), size)
	_, err = a.run(ctx, install(slices.Concat(a.o.Packages, a.o.With), a.packages(), "--download-only")...)
	return err
}

// open opens a downloaded package after checking its hash.
func (a *apt) open(p Package) (*os.File, error) {
	return download.Open(filepath.Join(a.packages(), p.file), sha256.New(), p.SHA256)
}
