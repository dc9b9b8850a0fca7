package sandbox

import (
	"cmp"
	"errors"
	"strings"
	"sync"

	"gaol/jail/zygote"
)

// Warm describes a Node that runs are forked from, which has run no guest code.
type Warm struct {
	zygote.Options
	HeapMiB int64 // of V8's old space, unless a Command has another

	// Spec describes the Node with a heap. Sandboxes with the same Options and Spec share it; Env and Layer must be alike for
	// all sandboxes of the process.
	Spec func(heapMiB int64) zygote.Spec
}

// zygoteKind identifies a Node that runs are forked from.
type zygoteKind struct {
	zygote.Options
	image, args, cgroup string
}

// zygotePool is a pool of zygotes and the sets that use it.
type zygotePool struct {
	*zygote.Pool
	users map[*zygoteSet]struct{}
}

// sharedZygotes are the pools of this process. Sandboxes of the same kind share a pool. An unused
// pool stays until CloseIdle, because the next sandbox is mostly of the same kind.
var sharedZygotes = struct {
	sync.Mutex
	pools map[zygoteKind]*zygotePool
}{pools: map[zygoteKind]*zygotePool{}}

// zygoteSet is the zygotes of one sandbox: a pool for each heap size. It is safe for concurrent use.
type zygoteSet struct {
	warm     *Warm
	released bool // guarded by sharedZygotes' lock
}

// acquireZygotes returns the zygotes that w describes, and starts the first one if there is none yet. The
// caller must call release.
func acquireZygotes(w *Warm) *zygoteSet {
	s := &zygoteSet{warm: w}
	s.pool(0)
	return s
}

// pool returns the pool for a heap size, which is started on first use. 0 is the size of
// the set's kind.
func (s *zygoteSet) pool(heapMiB int64) *zygote.Pool {
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	spec := s.warm.Spec(cmp.Or(heapMiB, s.warm.HeapMiB))
	k := zygoteKind{s.warm.Options, spec.Image, strings.Join(spec.Args, " "), spec.Cgroup}
	p := sharedZygotes.pools[k]
	if p == nil {
		spec.Dir = StateDir
		p = &zygotePool{zygote.NewPool(spec, k.Options), map[*zygoteSet]struct{}{}}
		sharedZygotes.pools[k] = p
	}
	if !s.released { // otherwise the sandbox was closed while a run started, and no second release comes
		p.users[s] = struct{}{}
	}
	p.Warm()
	return p.Pool
}

// release ends the use of the set's pools. It may be called on nil.
func (s *zygoteSet) release() {
	if s == nil {
		return
	}
	sharedZygotes.Lock()
	defer sharedZygotes.Unlock()
	s.released = true
	for _, p := range sharedZygotes.pools {
		delete(p.users, s)
	}
}

// CloseIdle stops the zygotes that no set uses.
func CloseIdle() error {
	sharedZygotes.Lock()
	var idle []*zygotePool
	for kind, p := range sharedZygotes.pools {
		if len(p.users) == 0 {
			idle = append(idle, p)
			delete(sharedZygotes.pools, kind)
		}
	}
	sharedZygotes.Unlock()
	var failed error
	for _, p := range idle {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}
