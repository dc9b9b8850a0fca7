package bench

import (
	"errors"
	"testing"

	"gaol/rootfs"
)

// The Node of an imported image is not executed on the host.
func TestBareNodeIsOurs(t *testing.T) {
	image := &rootfs.Image{Node: "24.21.0", Imported: &rootfs.Imported{TrustNode: true}}
	if _, err := newBareNode(t.TempDir(), image); !errors.Is(err, rootfs.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}
