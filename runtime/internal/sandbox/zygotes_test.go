package sandbox

import (
	"testing"

	"gaol/jail/zygote"
)

// TestReleaseBeforePool checks that a run which starts while its runtime is closed leaves
// no pool in use.
func TestReleaseBeforePool(t *testing.T) {
	image := t.TempDir()
	s := acquireZygotes(&Warm{HeapMiB: 64, Spec: func(heapMiB int64) zygote.Spec {
		return zygote.Spec{Image: image, Args: []string{"/none", []string{"a", "b"}[heapMiB/64]}}
	}})
	s.release()
	s.pool(32)
	sharedZygotes.Lock()
	users := len(sharedZygotes.pools[zygoteKind{image: image, args: "/none a"}].users)
	sharedZygotes.Unlock()
	if err := CloseIdle(); users != 0 || err != nil {
		t.Errorf("%d users, %v", users, err)
	}
}
