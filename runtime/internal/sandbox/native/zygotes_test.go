package native

import (
	"testing"

	"gaol/runtime/internal/sandbox"
)

// TestReleaseBeforePool checks that a run which starts while its runtime is closed leaves
// no pool in use.
func TestReleaseBeforePool(t *testing.T) {
	image := t.TempDir()
	s := acquireZygotes(&sandbox.Warm{Image: image, Args: []string{"/none", "b"}})
	s.release()
	s.pool([]string{"/none", "a"})
	sharedZygotes.Lock()
	users := len(sharedZygotes.pools[zygoteKind{image: image, args: "/none a"}].users)
	sharedZygotes.Unlock()
	if err := CloseIdle(); users != 0 || err != nil {
		t.Errorf("%d users, %v", users, err)
	}
}
