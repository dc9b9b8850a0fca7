package rootfs

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrIntegrity is what a build gives when a download is not what it should be.
var ErrIntegrity = errors.New("content does not match its sha512")

// integrity is the sha512 of a package's tarball.
type integrity [sha512.Size]byte

// parseIntegrity reads the sha512 of a subresource-integrity text, the form
// that the registry and package locks use. Weaker hashes beside it are ignored.
func parseIntegrity(text string) (integrity, error) {
	for _, field := range strings.Fields(text) {
		digest, found := strings.CutPrefix(field, "sha512-")
		if !found {
			continue
		}
		digest, _, _ = strings.Cut(digest, "?") // options, which nobody defines
		sum, err := base64.StdEncoding.DecodeString(digest)
		if err != nil || len(sum) != sha512.Size {
			return integrity{}, fmt.Errorf("integrity %q: not a sha512", text)
		}
		return integrity(sum), nil
	}
	return integrity{}, fmt.Errorf("integrity %q: no sha512", text)
}

// String returns the hex digits.
func (i integrity) String() string { return hex.EncodeToString(i[:]) }

// MarshalText makes the name of an image depend on the digits.
func (i integrity) MarshalText() ([]byte, error) { return []byte(i.String()), nil }
