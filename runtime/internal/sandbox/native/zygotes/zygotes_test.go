package zygotes

import (
	"testing"

	"gaol/jail/zygote"
)

// TestReleaseBeforePool checks that a run which starts while its runtime is closed leaves
// no pool in use.
func TestReleaseBeforePool(t *testing.T) {
	spec := func(k Kind) zygote.Spec { return zygote.Spec{Image: k.Image, Args: []string{k.Node}} }
	kind := Kind{Image: t.TempDir(), Node: "/none", HeapMiB: 64}
	s := Acquire(kind, spec)
	s.Release()
	s.Pool(32)
	kind.HeapMiB = 32
	shared.Lock()
	users := shared.pools[kind].users
	shared.Unlock()
	if err := CloseIdle(); users != 0 || err != nil {
		t.Errorf("%d users, %v", users, err)
	}
}
