package debian

import "strings"

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
	"coreutils": "/usr/bin/ls", // busybox has the other programs; its ls prints letters above U+02FF as "?"
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
	{"/usr/lib/systemd/", "an image has no systemd"},
	{"/etc/cron.daily/", "an image has no cron"},
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
