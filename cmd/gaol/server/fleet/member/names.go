package member

import (
	"crypto/sha256"
	"encoding/binary"
)

// Names is a Bloom filter of names: it has all that were added, and few others.
type Names []byte

// filterBytes is the size of a filter. With 2,000 names it has one of 1,000 others.
const (
	filterBytes = 4 << 10
	filterBits  = 6 // of each name
)

// NewNames returns a filter of names.
func NewNames(names []string) Names {
	n := make(Names, filterBytes)
	for _, name := range names {
		for _, bit := range bitsOf(name, len(n)) {
			n[bit/8] |= 1 << (bit % 8)
		}
	}
	return n
}

// HasAll reports whether the filter has all names.
func (n Names) HasAll(names []string) bool {
	for _, name := range names {
		if len(n) == 0 {
			return false
		}
		for _, bit := range bitsOf(name, len(n)) {
			if n[bit/8]&(1<<(bit%8)) == 0 {
				return false
			}
		}
	}
	return true
}

// bitsOf returns the bits of a name. FNV is no hash for that: names that differ in their last characters have bits in common.
func bitsOf(name string, bytes int) (bits [filterBits]uint64) {
	sum := sha256.Sum256([]byte(name))
	a, b := binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])
	for i := range bits {
		bits[i] = (a + uint64(i)*b) % uint64(bytes*8) //nolint:gosec // both are small
	}
	return bits
}
