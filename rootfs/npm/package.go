package npm

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Package is one version of a package, with the hash of its tarball.
type Package struct {
	Name, Version string
	Integrity     Integrity
}

// String returns the name and version as npm writes them, such as "npm@11.0.0".
func (p Package) String() string { return p.Name + "@" + p.Version }

// VersionForm matches a version of Node, or its first one or two numbers. It does not match
// pre-releases.
var VersionForm = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,4}){0,2}$`)

// Pins maps "name@version" to an integrity text that is known without the registry.
type Pins map[string]string

// Find returns the package if its integrity is pinned.
func (p Pins) Find(name, version string) (_ Package, pinned bool, err error) {
	text, pinned := p[name+"@"+version]
	if !pinned {
		return Package{}, false, nil
	}
	sum, err := ParseIntegrity(text)
	return Package{name, version, sum}, true, err
}

// Integrity is the SHA-512 of a package's tarball.
type Integrity [sha512.Size]byte

// ParseIntegrity reads the SHA-512 from a subresource integrity text, the form that
// registries and lock files use. It ignores weaker hashes beside it.
func ParseIntegrity(text string) (Integrity, error) {
	for _, field := range strings.Fields(text) {
		digest, found := strings.CutPrefix(field, "sha512-")
		if !found {
			continue
		}
		digest, _, _ = strings.Cut(digest, "?") // options, of which none are defined
		sum, err := base64.StdEncoding.DecodeString(digest)
		if err != nil || len(sum) != sha512.Size {
			return Integrity{}, fmt.Errorf("integrity %q: not a sha512", text)
		}
		return Integrity(sum), nil
	}
	return Integrity{}, fmt.Errorf("integrity %q: no sha512", text)
}

// String returns the hex digits.
func (i Integrity) String() string { return hex.EncodeToString(i[:]) }

// MarshalText returns the hex digits. The name of an image is a hash over them.
func (i Integrity) MarshalText() ([]byte, error) { return []byte(i.String()), nil }
