package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	"gaol/internal/lazyregexp"
	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// Options are the packages to install and their destination.
type Options struct {
	AptGet, DpkgDeb string // host paths of the programs
	Keep            string // folder for lists and packages, kept for later builds
	Temp            string // folder for temporary files, made if missing
	Packages        []string
	With            []string  // more packages, of which images get programs for administrators, too
	Have            []Package // packages of the tree, which must be among Packages; only newer versions of them are installed
	Report          *download.Reporter
}

// Install adds the packages and their dependencies to the tree, and returns all packages of the tree, sorted by
// name. Names in With that are not names of packages, such as virtual ones, are an error.
//
// Precondition: no other process uses the folder Keep.
func Install(ctx context.Context, t *layer.Tree, o Options) ([]Package, error) {
	a, err := newApt(o)
	if err != nil {
		return nil, err
	}
	debs, err := a.resolve(ctx)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(debs), func(p Package) bool { return slices.ContainsFunc(o.Have, p.same) })
	if err := a.download(ctx, missing); err != nil {
		return nil, err
	}
	o.Report.Line("unpack %d Debian packages", len(missing))
	var links []alternative
	for _, p := range missing {
		more, err := a.unpack(ctx, t, p)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
		}
		links = append(links, more...)
	}
	kept := slices.DeleteFunc(slices.Clone(o.Have), func(p Package) bool { return contains(debs, p.Name) })
	all := slices.Concat(kept, debs)
	if len(o.Have) > 0 { // debs are sorted by file, and the ids of images cover that order
		slices.SortFunc(all, func(x, y Package) int { return strings.Compare(x.Name, y.Name) })
	}
	return all, finish(t, links)
}

// unpack adds the files of one package, and returns its alternatives.
func (a *apt) unpack(ctx context.Context, t *layer.Tree, p Package) ([]alternative, error) {
	err := a.archive(ctx, p, "--fsys-tarfile", func(r io.Reader) error {
		return t.ApplyPackage(ctx, r, func(h *tar.Header, content *bufio.Reader) (string, error) { return a.place(p.Name, h, content) })
	})
	if err != nil {
		return nil, err
	}
	return a.alternatives(ctx, p)
}

// archive passes an archive of a package to read. dpkg-deb decompresses it.
func (a *apt) archive(ctx context.Context, p Package, option string, read func(io.Reader) error) error {
	f, err := a.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, a.o.DpkgDeb, option, "-")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = f, &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = read(out)
	_, _ = io.Copy(io.Discard, out) // after an error, dpkg-deb must not block on the pipe
	if failed := cmd.Wait(); failed != nil && err == nil {
		message, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		err = fmt.Errorf("dpkg-deb: %w: %s", failed, message)
	}
	return err
}

// place returns the path of an entry of the package name, or "" to leave it out. The tree drops set-id bits.
func (a *apt) place(name string, h *tar.Header, content *bufio.Reader) (string, error) {
	p, err := imagePath(h.Name)
	if err != nil || a.isLeftOut(name, p) {
		return "", err
	}
	if h.Typeflag == tar.TypeLink {
		h.Linkname, err = imagePath(h.Linkname)
	}
	head, _ := content.Peek(32) // longer than all of scriptsLeftOut; the tree meets the same error
	if !a.perl && slices.ContainsFunc(scriptsLeftOut, func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }) {
		return "", err
	}
	return p, err
}

// imagePath turns the name of an entry into a path of the image, whose /usr is merged.
func imagePath(name string) (string, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if name == "" || name == "." {
		return "/", nil
	}
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: path %q", layer.ErrRefused, name)
	}
	if top, _, _ := strings.Cut(name, "/"); slices.Contains([]string{"bin", "sbin", "lib", "lib64"}, top) {
		name = "usr/" + name
	}
	return "/" + name, nil
}

// finish does the work of maintainer scripts that an image needs.
func finish(t *layer.Tree, links []alternative) error {
	if err := errors.Join(bundleCertificates(t), linkAlternatives(t, links)); err != nil {
		return err
	}
	for _, l := range packageLinks {
		if t.Has(l.path) || !t.Has(path.Join(path.Dir(l.path), l.target)) {
			continue
		}
		if err := t.Symlink(l.path, l.target); err != nil {
			return err
		}
	}
	return nil
}

// Certificates is the path of the CA certificates in an image.
const Certificates = "/etc/ssl/certs/ca-certificates.crt"

// bundleCertificates joins the files of ca-certificates into the bundle that programs read.
func bundleCertificates(t *layer.Tree) error {
	root, err := t.OpenRoot("/usr/share/ca-certificates")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var bundle strings.Builder
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(p) != ".crt" {
			return err
		}
		text, err := root.ReadFile(p)
		bundle.Write(bytes.TrimRight(text, "\n"))
		bundle.WriteString("\n")
		return err
	})
	return errors.Join(err, t.WriteText(Certificates, bundle.String()))
}

// Package is a Debian package that an image has files of.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Arch    string `json:"arch"`   // as Debian names it: "amd64", "all"
	SHA256  string `json:"sha256"` // hex digits, of the .deb file

	file string // its name among the downloads
	size int64  // bytes, of the .deb file
}

func (p Package) same(q Package) bool {
	return p.Name == q.Name && p.Arch == q.Arch && p.SHA256 == q.SHA256
}

// Default lists the Debian packages of an image that is not minimal. Their dependencies are
// added, libc6 among them.
var Default = []string{
	"bash", "dash", "git", "curl", "jq", "tar", "unzip", "zip", "make", "ripgrep", "sqlite3", "openssh-client",
	"ca-certificates", "tzdata", "netbase",
	"fontconfig", "fonts-dejavu-core", // native addons that draw text need both
	"libstdc++6", "libatomic1", // Node and native addons are linked to them
	"libc-bin",     // getent, iconv, ldd, and the locale C.UTF-8
	"ncurses-base", // bash's descriptions of terminals
	"coreutils",    // see onlyFiles
}

// Preset names packages that are used together.
type Preset struct {
	Name, About string
	Size        int // of the image with it, in MB
	Packages    []string
}

// Presets are sorted by name. No Debian package has one of the names.
var Presets = []Preset{
	{"browser", "Chromium, and fonts like Arial and of emoji", 701, []string{"chromium", "fonts-liberation", "fonts-noto-color-emoji"}},
	{"build", "gcc, g++, make and Python, for node-gyp", 471, []string{"gcc", "g++", "make", "libc6-dev", "python3"}},
	{"python", "Python with pip and venv", 249, []string{"python3", "python3-pip", "python3-venv"}},
}

// packageName is the form of the names of packages, from Debian's policy, with a bound on the length. A name that
// ends in a hyphen would be an option of apt-get.
var packageName = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]{0,98}[a-z0-9+.]$`)

// IsPackageName reports whether name can be the name of a package.
func IsPackageName(name string) bool { return packageName().MatchString(name) }

// stub is a package that apt believes to be installed. Images get neither the package nor what only it depends on,
// unless Options.With names the package.
type stub struct{ name, why string }

var stubs = []stub{
	{"debconf", "only maintainer scripts use it, and none is run"},
	{"adduser", "the same"},
	{"passwd", "the same, and guests are one user"},
	{"base-files", "the builder makes the base folders and files"},
	{"debianutils", "bash: only its maintainer scripts use it"},
	{"dpkg", "nothing is installed in an image"},
	{"dconf-gsettings-backend", "GTK: settings of a desktop, with systemd"},
	{"x11-utils", "chromium: tools of a desktop, with drivers of graphics cards"},
	{"xdg-utils", "chromium: tools of a desktop, in Perl"},
}

// defaultStubs are those that only packages of Default do not need. An image gets them if a package of Options.With
// depends on them.
var defaultStubs = []stub{
	{"perl", "git: only commands that an image leaves out are written in it"},
	{"liberror-perl", "git: the same"},
	{"openssl", "ca-certificates: only its maintainer script uses it"},
}

// onlyFiles lists the only files that images get of a package, in addition to its copyright, unless Options.With names
// it.
var onlyFiles = map[string][]string{
	// busybox includes the other programs. Its ls prints letters above U+02FF as "?", and Debian's lacks nohup.
	"coreutils": {"/usr/bin/ls", "/usr/bin/nohup"},
}

// forAdministrators has programs that images get of the packages of Options.With only.
const forAdministrators = "/usr/sbin/"

// leftOut lists the files of packages that images do not get. A folder ends in a slash.
var leftOut = []struct{ path, why string }{
	{"/usr/share/doc/", "documentation, except the copyright files"},
	{"/usr/share/man/", "manuals"},
	{"/usr/share/info/", "manuals"},
	{"/usr/share/locale/", "translations: messages are in English"},
	{"/usr/share/lintian/", "for package maintainers"},
	{"/etc/rmt", "for tape drives"},
	{"/usr/share/bug/", "for bug reports"},
	{"/usr/share/menu/", "for desktops"},
	{"/usr/share/applications/", "for desktops"},
	{"/usr/share/pixmaps/", "for desktops"},
	{"/usr/share/debianutils/", "for maintainer scripts"},
	{"/usr/share/gcc/", "for debuggers"},
	{"/usr/lib/systemd/", "images lack systemd"},
	{"/etc/chromium.d/dev-shm", "asks a program that images lack for the size of /dev/shm"},
	{"/usr/lib/openssh/", "for keys of hosts and of hardware"},
	{"/etc/cron.daily/", "images lack cron"},
	{"/usr/lib/x86_64-linux-gnu/gconv/", "rare character sets, for iconv: 8 MB"},
	{"/usr/lib/aarch64-linux-gnu/gconv/", "the same"},
	{"/usr/share/zoneinfo/right/", "a copy that counts leap seconds"},
	{"/usr/share/zoneinfo/posix/", "another copy"},
	{"/usr/share/zoneinfo/localtime", "the host's own time zone"},
	{"/usr/lib/git-core/git", "a copy of /usr/bin/git, and a link in images"},
	{"/usr/lib/git-core/git-daemon", "serves repositories"},
	{"/usr/lib/git-core/git-http-backend", "serves repositories"},
	{"/usr/lib/git-core/git-http-push", "pushes to WebDAV"},
	{"/usr/lib/git-core/git-imap-send", "sends mail"},
	{"/usr/lib/git-core/git-shell", "for servers"},
	{"/usr/bin/git-shell", "for servers"},
	{"/usr/lib/git-core/scalar", "maintains large repositories in the background"},
	{"/usr/bin/scalar", "the same"},
	{"/usr/share/gitweb/", "serves repositories, in Perl"},
	{"/usr/share/git-core/contrib/", "examples"},
}

// perlModules is left out, with scriptsLeftOut, of images without Perl.
const perlModules = "/usr/share/perl5"

// scriptsLeftOut lists the first lines of scripts in Perl.
var scriptsLeftOut = []string{"#!/usr/bin/perl", "#! /usr/bin/perl", "#!/usr/bin/env perl"}

// packageLinks are made after all packages are unpacked, if the path is free and the target
// exists.
var packageLinks = []struct{ path, target string }{
	{"/usr/bin/sh", "dash"}, // some releases leave this to a maintainer script
	{"/usr/lib/git-core/git", "../../bin/git"},
	{"/usr/lib/ssl/cert.pem", "../../../etc/ssl/certs/ca-certificates.crt"}, // OpenSSL's default file
}

// isLeftOut reports whether images do not get the file or folder p of a package.
func (a *apt) isLeftOut(name, p string) bool {
	if strings.HasPrefix(p, "/usr/share/doc/") && strings.HasSuffix(p, "/copyright") {
		return false
	}
	if only, listed := onlyFiles[name]; listed && !slices.Contains(a.o.With, name) && !slices.Contains(only, p) {
		return true
	}
	if !a.perl && strings.HasPrefix(p+"/", perlModules) || len(a.o.With) == 0 && strings.HasPrefix(p, forAdministrators) {
		return true
	}
	return slices.ContainsFunc(leftOut, func(l struct{ path, why string }) bool {
		return p == strings.TrimSuffix(l.path, "/") || strings.HasSuffix(l.path, "/") && strings.HasPrefix(p, l.path)
	})
}
