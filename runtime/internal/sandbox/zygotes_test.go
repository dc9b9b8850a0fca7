package sandbox

import (
	"testing"
)

// TestReleaseBeforePool checks that a run which starts while its runtime is closed leaves
// no pool in use.
func TestReleaseBeforePool(t *testing.T) {
	kind := WarmKind{Image: t.TempDir(), Node: "/none", HeapMiB: 64}
	s := acquireZygotes(&Warm{WarmKind: kind, Args: func(int64) []string { return nil }})
	s.release()
	s.pool(32)
	kind.HeapMiB = 32
	sharedZygotes.Lock()
	users := len(sharedZygotes.pools[kind].users)
	sharedZygotes.Unlock()
	if err := CloseIdle(); users != 0 || err != nil {
		t.Errorf("%d users, %v", users, err)
	}
}
