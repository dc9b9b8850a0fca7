package native

import (
	"testing"

	"gaol/jail/zygote"
)

// TestReleaseBeforePool checks that a run which starts while its runtime is closed leaves
// no pool in use.
func TestReleaseBeforePool(t *testing.T) {
	spec := func(k zygoteKind) zygote.Spec { return zygote.Spec{Image: k.Image, Args: []string{k.Node}} }
	kind := zygoteKind{Image: t.TempDir(), Node: "/none", HeapMiB: 64}
	s := acquireSet(kind, spec)
	s.release()
	s.pool(32)
	kind.HeapMiB = 32
	sharedZygotes.Lock()
	users := sharedZygotes.pools[kind].users
	sharedZygotes.Unlock()
	if err := CloseIdle(); users != 0 || err != nil {
		t.Errorf("%d users, %v", users, err)
	}
}
