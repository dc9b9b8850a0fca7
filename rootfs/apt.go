package rootfs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// aptConfig is read after the host's own configuration, which has the proxies. The
// host's hooks are not for us, and of a source's indexes packages are all that we need.
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

// apt runs the host's apt-get on a state of its own, in which nothing is installed
// but stubs. It uses the host's sources and keys: apt checks the signatures of their
// indexes, and packages by the hashes there. It installs nothing.
type apt struct {
	program string
	options []string
	kept    string // where lists and packages stay
	blank   string // a folder without packages
}

// apt makes the state in the build's own folder, and what is kept of it among the
// store's downloads.
//
// Precondition: the lock of lockApt is held.
func (b *build) apt() (*apt, error) {
	in := &b.store.in
	a := &apt{program: in.aptGet, kept: filepath.Join(b.store.downloads(), "apt"), blank: b.scratch.path("apt")}
	for _, dir := range []string{filepath.Join(a.kept, "lists/partial"), filepath.Join(a.packages(), "partial"), filepath.Join(a.blank, "partial")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	var status strings.Builder
	for _, s := range stubs {
		fmt.Fprintf(&status, "Package: %s\nStatus: install ok installed\nArchitecture: all\nMulti-Arch: foreign\nVersion: 9999:0\n\n", s.name)
	}
	config, installed := filepath.Join(a.blank, "conf"), filepath.Join(a.blank, "status")
	if err := errors.Join(os.WriteFile(config, []byte(aptConfig), 0o644), os.WriteFile(installed, []byte(status.String()), 0o644)); err != nil {
		return nil, err
	}
	a.options = []string{"-qq", "-y", "-c", config,
		"-o", "Dir::State=" + a.kept, "-o", "Dir::State::lists=" + filepath.Join(a.kept, "lists"),
		"-o", "Dir::State::status=" + installed, "-o", "Dir::Cache=" + a.kept,
	}
	return a, nil
}

// packages is the folder of the packages that were downloaded.
func (a *apt) packages() string { return filepath.Join(a.kept, "packages") }

// lockApt waits for other builds that use apt.
func (b *build) lockApt(ctx context.Context) (*os.File, error) {
	return lockWait(ctx, filepath.Join(b.store.locks(), "apt"))
}

// run returns what apt-get prints. Its files are extra, from descriptor 3 on.
func (a *apt) run(ctx context.Context, extra *os.File, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, a.program, append(slices.Clone(a.options), args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	if extra != nil {
		cmd.ExtraFiles = []*os.File{extra}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fmt.Errorf("apt-get: %w%s", err, aptError(stderr.String()))
	}
	return out, nil
}

// aptError picks the first error of apt-get's output, with a colon before it.
func aptError(text string) string {
	for line := range strings.Lines(text) {
		if message, isError := strings.CutPrefix(strings.TrimSpace(line), "E: "); isError {
			return ": " + message
		}
	}
	return ""
}

// resolve returns the packages and all that they depend on, sorted by name, by the
// indexes of now. Without a network those of the last time do.
func (a *apt) resolve(ctx context.Context, names []string, r *reporter) ([]Package, error) {
	_, stale := a.run(ctx, nil, "update")
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	args := append([]string{"-o", "Dir::Cache::archives=" + a.blank, "--print-uris", "install", "--"}, names...)
	out, err := a.run(ctx, nil, args...)
	if err != nil {
		if stale != nil {
			err = fmt.Errorf("%w; %w", stale, err)
		}
		return nil, err
	}
	if stale != nil {
		r.line("use the lists of packages that are there: %v", stale)
	}
	var found []Package
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		p, err := parsePackage(line)
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	slices.SortFunc(found, func(x, y Package) int { return strings.Compare(x.file, y.file) })
	return found, nil
}

// packageForm is a line of apt-get --print-uris: the address, the file's name, its size
// and its hash.
var packageForm = regexp.MustCompile(`^'[^']*' (([a-z0-9][a-z0-9+.-]*)_([A-Za-z0-9.+~%-]+)_([a-z0-9]+)\.deb) ([0-9]{1,12}) SHA256:([0-9a-f]{64})\s*$`)

func parsePackage(line string) (Package, error) {
	m := packageForm.FindStringSubmatch(line)
	if m == nil {
		return Package{}, fmt.Errorf("apt-get: unexpected line %.200q", line)
	}
	version, err := url.PathUnescape(m[3])
	if err != nil {
		return Package{}, fmt.Errorf("apt-get: unexpected line %.200q", line)
	}
	size, err := strconv.ParseInt(m[5], 10, 64)
	return Package{Name: m[2], Version: version, Arch: m[4], SHA256: m[6], file: m[1], size: size}, err
}

// missing counts the packages that are not among the downloads as they should be, and
// their bytes.
func (a *apt) missing(found []Package) (count int, size int64, err error) {
	for _, p := range found {
		f, err := a.open(p)
		if err == nil {
			_ = f.Close()
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrIntegrity) {
			return 0, 0, err
		}
		// apt-get takes a file of the right size for what it should be.
		if err := os.Remove(filepath.Join(a.packages(), p.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		count++
		size += p.size
	}
	return count, size, nil
}

// fetch downloads what is missing of the packages.
func (a *apt) fetch(ctx context.Context, names []string, found []Package, r *reporter) error {
	count, size, err := a.missing(found)
	if count == 0 || err != nil {
		return err
	}
	bar := r.bar(fmt.Sprintf("fetch %d Debian packages", count), size)
	defer bar.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer read.Close()
		follow(read, bar, size)
	}()
	args := append([]string{"-o", "APT::Status-Fd=3", "-o", "Dir::Cache::archives=" + a.packages(), "--download-only", "install", "--"}, names...)
	_, err = a.run(ctx, write, args...)
	_ = write.Close()
	<-done
	return err
}

// follow moves the bar as apt-get reports its progress: dlstatus:N:PERCENT:TEXT.
func follow(r io.Reader, bar io.Writer, size int64) {
	var shown int64
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), ":", 4)
		if len(fields) < 3 || fields[0] != "dlstatus" {
			continue
		}
		percent, err := strconv.ParseFloat(fields[2], 64)
		if at := int64(percent / 100 * float64(size)); err == nil && at > shown && at <= size {
			_, _ = io.CopyN(bar, progress{}, at-shown)
			shown = at
		}
	}
	_, _ = io.Copy(io.Discard, r) // apt-get must not wait for a reader
}

// progress is as many bytes as are read, for a bar.
type progress struct{}

func (progress) Read(p []byte) (int, error) { return len(p), nil }

// open opens a package whose hash has been checked.
func (a *apt) open(p Package) (*os.File, error) {
	f, err := os.Open(filepath.Join(a.packages(), p.file))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	if _, err = io.Copy(sum, f); err == nil && hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		err = fmt.Errorf("%s: %w", p.file, ErrIntegrity)
	}
	if err = errors.Join(err, rewind(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
