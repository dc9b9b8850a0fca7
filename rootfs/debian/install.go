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
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// Options are the packages to install and their destination.
type Options struct {
	AptGet, DpkgDeb string // host paths of the programs
	Keep            string // folder for lists and packages, kept for later builds
	Temp            string // folder for temporary files, made if missing
	Packages        []string
	Report          *download.Reporter
}

// Install adds the packages and their dependencies to the tree, and returns them sorted by
// name.
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
	if err := a.download(ctx, debs); err != nil {
		return nil, err
	}
	o.Report.Line("unpack %d Debian packages", len(debs))
	for _, p := range debs {
		if err := a.unpack(ctx, t, p); err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
		}
	}
	return debs, finish(t)
}

// unpack adds the files of one package, which dpkg-deb decompresses.
func (a *apt) unpack(ctx context.Context, t *layer.Tree, p Package) error {
	f, err := a.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, a.o.DpkgDeb, "--fsys-tarfile", "-")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = f, &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = t.ApplyPackage(ctx, out, func(h *tar.Header, content *bufio.Reader) (string, error) { return place(p.Name, h, content) })
	_, _ = io.Copy(io.Discard, out) // after an error, dpkg-deb must not block on the pipe
	if failed := cmd.Wait(); failed != nil && err == nil {
		message, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		err = fmt.Errorf("dpkg-deb: %w: %s", failed, message)
	}
	return err
}

// place returns the path of an entry of the package name, or "" to leave it out. The tree drops set-id bits.
func place(name string, h *tar.Header, content *bufio.Reader) (string, error) {
	p, err := imagePath(h.Name)
	if err != nil || isLeftOut(name, p) {
		return "", err
	}
	if h.Typeflag == tar.TypeLink {
		h.Linkname, err = imagePath(h.Linkname)
	}
	head, _ := content.Peek(32) // longer than all of scriptsLeftOut; the tree meets the same error
	if slices.ContainsFunc(scriptsLeftOut, func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }) {
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
	top, _, _ := strings.Cut(name, "/")
	if slices.Contains([]string{"bin", "sbin", "lib", "lib64"}, top) {
		name = "usr/" + name
	}
	return "/" + name, nil
}

// finish does the work of maintainer scripts that an image needs.
func finish(t *layer.Tree) error {
	if err := bundleCertificates(t); err != nil {
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
	root, err := os.OpenRoot(t.HostPath("/usr/share/ca-certificates"))
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

// Default lists the Debian packages of an image that is not minimal. Their dependencies are
// added, libc6 among them.
var Default = []string{
	"bash", "dash", "git", "curl", "jq", "tar", "unzip",
	"ca-certificates", "tzdata", "netbase",
	"fontconfig", "fonts-dejavu-core", // native addons that draw text need both
	"libstdc++6", "libatomic1", // Node and native addons are linked to them
	"libc-bin",     // getent, iconv, ldd, and the locale C.UTF-8
	"ncurses-base", // bash's descriptions of terminals
	"coreutils",    // see onlyFiles
}

// Optional maps the values of BuildOptions.With to the packages that they add.
var Optional = map[string][]string{
	"python3": {"python3"},
}

// stubs lists the packages that apt believes to be installed. It leaves them out, and with
// them what only they depend on.
var stubs = []struct{ name, why string }{
	{"perl", "git: only commands that an image leaves out are written in it"},
	{"liberror-perl", "git: the same"},
	{"debconf", "only maintainer scripts use it, and none is run"},
	{"openssl", "ca-certificates: only its maintainer script uses it"},
	{"base-files", "the builder makes the base folders and files"},
	{"debianutils", "bash: only its maintainer scripts use it"},
	{"dpkg", "nothing is installed in an image"},
}

// onlyFiles lists the only file that images get of a package, in addition to its copyright.
var onlyFiles = map[string]string{
	"coreutils": "/usr/bin/ls", // busybox includes the other programs; its ls prints letters above U+02FF as "?"
}

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
	{"/usr/sbin/", "administers a machine"},
	{"/usr/lib/systemd/", "images lack systemd"},
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
	{"/usr/share/perl5/", "Perl"},
	{"/usr/share/git-core/contrib/", "examples"},
}

// scriptsLeftOut lists the first lines of scripts whose interpreter no image has.
var scriptsLeftOut = []string{"#!/usr/bin/perl", "#! /usr/bin/perl", "#!/usr/bin/env perl"}

// packageLinks are made after all packages are unpacked, if the path is free and the target
// exists.
var packageLinks = []struct{ path, target string }{
	{"/usr/bin/sh", "dash"}, // some releases leave this to a maintainer script
	{"/usr/lib/git-core/git", "../../bin/git"},
	{"/usr/lib/ssl/cert.pem", "../../../etc/ssl/certs/ca-certificates.crt"}, // OpenSSL's default file
}

// isLeftOut reports whether images do not get the file or folder p of a package.
func isLeftOut(name, p string) bool {
	if strings.HasPrefix(p, "/usr/share/doc/") && strings.HasSuffix(p, "/copyright") {
		return false
	}
	if only, listed := onlyFiles[name]; listed && p != only {
		return true
	}
	for _, l := range leftOut {
		if p == strings.TrimSuffix(l.path, "/") || strings.HasSuffix(l.path, "/") && strings.HasPrefix(p, l.path) {
			return true
		}
	}
	return false
}
