package npm

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"gaol/internal/lazyregexp"
)

// Package is one version of a package. The name of an image is a hash over its packages as
// JSON.
type Package struct {
	Name, Version string
	Integrity     string // hex digits of the SHA-512 of the tarball
}

// String returns the name and version as npm writes them, such as "npm@11.0.0".
func (p Package) String() string { return p.Name + "@" + p.Version }

// VersionForm matches a version of Node, or its first one or two numbers. It does not match
// pre-releases.
var VersionForm = lazyregexp.New(`^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$`)

// Pins maps "name@version" to an integrity text that is known without the registry.
type Pins map[string]string

// ErrNoPin is the error for a package whose integrity is not pinned.
var ErrNoPin = errors.New("no pin")

// Find returns the package if its integrity is pinned, and else ErrNoPin.
func (p Pins) Find(name, version string) (Package, error) {
	text, pinned := p[name+"@"+version]
	if !pinned {
		return Package{}, ErrNoPin
	}
	return newPackage(name, version, text)
}

func newPackage(name, version, integrity string) (Package, error) {
	sum, err := parseIntegrity(integrity)
	if err != nil {
		return Package{}, fmt.Errorf("%s@%s: %w", name, version, err)
	}
	return Package{name, version, sum}, nil
}

// parseIntegrity reads the SHA-512 from a subresource integrity text, the form that
// registries and lock files use, and returns its hex digits. It ignores weaker hashes beside
// it.
func parseIntegrity(text string) (string, error) {
	for _, field := range strings.Fields(text) {
		digest, found := strings.CutPrefix(field, "sha512-")
		if !found {
			continue
		}
		digest, _, _ = strings.Cut(digest, "?") // options, of which none are defined
		sum, err := base64.StdEncoding.DecodeString(digest)
		if err != nil || len(sum) != sha512.Size {
			return "", fmt.Errorf("integrity %q: not a sha512", text)
		}
		return hex.EncodeToString(sum), nil
	}
	return "", fmt.Errorf("integrity %q: no sha512", text)
}
