package rootfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Package is a Debian package that an image has files of.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Arch    string `json:"arch"`   // in Debian's words: "amd64", "all"
	SHA256  string `json:"sha256"` // hex digits, of the .deb file

	file string // its name among the downloads
	size int64  // bytes, of the .deb file
}

// packages are the Debian packages of an image that is not minimal. Those that they
// depend on come with them, libc6 among them.
var packages = []string{
	"bash", "dash", "git", "curl", "jq", "tar", "unzip",
	"ca-certificates", "tzdata", "netbase",
	"fontconfig", "fonts-dejavu-core", // native addons that draw text look for both
	"libstdc++6", "libatomic1", // Node and native addons are linked to them
	"libc-bin",     // getent, iconv, ldd, and the locale C.UTF-8
	"ncurses-base", // what bash has to know of terminals
}

// optional are the packages that BuildOptions.With adds, by its words.
var optional = map[string][]string{
	"python3": {"python3"},
}

// stubs are packages that apt takes for installed, so that it leaves them out with
// all that they alone depend on.
var stubs = []struct{ name, why string }{
	{"perl", "git: only commands that an image leaves out are written in it"},
	{"liberror-perl", "git: the same"},
	{"debconf", "only maintainer scripts use it, and none is run"},
	{"openssl", "ca-certificates: only its maintainer script uses it"},
	{"base-files", "the builder lays out the tree"},
	{"debianutils", "bash: only its maintainer scripts use it"},
	{"dpkg", "nothing is installed in an image"},
}

// leftOut are the files of packages that images do without: a folder ends in a slash.
var leftOut = []struct{ path, why string }{
	{"/usr/share/doc/", "documentation, but for the copyright files"},
	{"/usr/share/man/", "manuals"},
	{"/usr/share/info/", "manuals"},
	{"/usr/share/locale/", "translations: messages are in English"},
	{"/usr/share/lintian/", "for who makes packages"},
	{"/etc/rmt", "for tape drives"},
	{"/usr/share/bug/", "for who reports bugs"},
	{"/usr/share/menu/", "for desktops"},
	{"/usr/share/applications/", "for desktops"},
	{"/usr/share/pixmaps/", "for desktops"},
	{"/usr/share/debianutils/", "for maintainer scripts"},
	{"/usr/share/gcc/", "for debuggers"},
	{"/usr/sbin/", "administers a machine"},
	{"/usr/lib/systemd/", "there is no systemd"},
	{"/etc/cron.daily/", "there is no cron"},
	{"/usr/lib/x86_64-linux-gnu/gconv/", "rare character sets, for iconv: 8 MB"},
	{"/usr/lib/aarch64-linux-gnu/gconv/", "the same"},
	{"/usr/share/zoneinfo/right/", "a copy that counts leap seconds"},
	{"/usr/share/zoneinfo/posix/", "one more copy"},
	{"/usr/share/zoneinfo/localtime", "the host's own"},
	{"/usr/lib/git-core/git", "a copy of /usr/bin/git, and a link in images"},
	{"/usr/lib/git-core/git-daemon", "serves repositories"},
	{"/usr/lib/git-core/git-http-backend", "serves repositories"},
	{"/usr/lib/git-core/git-http-push", "pushes to WebDAV"},
	{"/usr/lib/git-core/git-imap-send", "sends mail"},
	{"/usr/lib/git-core/git-shell", "is for servers"},
	{"/usr/bin/git-shell", "is for servers"},
	{"/usr/lib/git-core/scalar", "maintains large repositories in the background"},
	{"/usr/bin/scalar", "the same"},
	{"/usr/share/gitweb/", "serves repositories, in Perl"},
	{"/usr/share/perl5/", "Perl"},
	{"/usr/share/git-core/contrib/", "examples"},
}

// scriptsLeftOut are what programs begin with whose interpreter no image has.
var scriptsLeftOut = []string{"#!/usr/bin/perl", "#! /usr/bin/perl", "#!/usr/bin/env perl"}

// packageLinks are made when all packages are unpacked, where their path is free and
// their target is there.
var packageLinks = []struct{ path, target string }{
	{"/usr/bin/sh", "dash"}, // some releases leave this to a maintainer script
	{"/usr/lib/git-core/git", "../../bin/git"},
	{"/usr/lib/ssl/cert.pem", "../../../etc/ssl/certs/ca-certificates.crt"}, // OpenSSL's own place
}

// isLeftOut reports whether an image does without the file, or folder, at p.
func isLeftOut(p string) bool {
	if strings.HasPrefix(p, "/usr/share/doc/") && strings.HasSuffix(p, "/copyright") {
		return false
	}
	for _, l := range leftOut {
		if p == strings.TrimSuffix(l.path, "/") || strings.HasSuffix(l.path, "/") && strings.HasPrefix(p, l.path) {
			return true
		}
	}
	return false
}

// choosePackages returns the packages to ask apt for, nil for none, and the name of
// such an image, "" for the usual one.
func (in *inputs) choosePackages(o BuildOptions) (chosen []string, variant string, err error) {
	with := slices.Compact(slices.Sorted(slices.Values(o.With)))
	switch {
	case o.Minimal && len(with) > 0:
		return nil, "", fmt.Errorf("with %s: a minimal image has no packages", strings.Join(with, ", "))
	case o.Minimal:
		return nil, "minimal", nil
	}
	chosen = slices.Clone(in.packages)
	for _, w := range with {
		more, known := in.optional[w]
		if !known {
			return nil, "", fmt.Errorf("with %q: there is only %s", w, strings.Join(slices.Sorted(maps.Keys(in.optional)), ", "))
		}
		chosen = append(chosen, more...)
	}
	return chosen, strings.Join(with, "-"), nil
}
