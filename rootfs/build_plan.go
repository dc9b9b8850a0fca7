package rootfs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
)

// plan is the plan of a build: the packages of the image, and its names.
type plan struct {
	node, npm npmPackage
	packages  []string // of Debian, without their dependencies; nil for a minimal image
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
	chosen, variant, err := in.choosePackages(o)
	if err != nil {
		return plan{}, err
	}
	text, err := json.Marshal([]any{builder, in.arch, node, npm, in.programs.SourceHash(), chosen})
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
	return plan{node, npm, chosen, names}, nil
}

// choosePackages returns the Debian packages to install, nil for none. The variant names the
// image in the default names; it is "" for the default image.
func (in *inputs) choosePackages(o BuildOptions) (chosen []string, variant string, err error) {
	with := slices.Compact(slices.Sorted(slices.Values(o.With)))
	switch {
	case o.Minimal && len(with) > 0:
		return nil, "", fmt.Errorf("with %s: a minimal image cannot have packages", strings.Join(with, ", "))
	case o.Minimal:
		return nil, "minimal", nil
	}
	chosen = slices.Clone(in.packages)
	for _, w := range with {
		more, known := in.optional[w]
		if !known {
			return nil, "", fmt.Errorf("with %q: only %s can be added", w, strings.Join(slices.Sorted(maps.Keys(in.optional)), ", "))
		}
		chosen = append(chosen, more...)
	}
	return chosen, strings.Join(with, "-"), nil
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
