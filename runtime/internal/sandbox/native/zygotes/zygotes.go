package zygotes

import (
	"cmp"
	"errors"
	"sync"

	"gaol/jail/zygote"
)

// Kind is what two sandboxes must have in common to share zygotes.
type Kind struct {
	Image        string // host path of the root file system
	Node         string // guest path of Node
	HeapMiB      int64  // V8's old space
	CgroupParent string
	Options      zygote.Options
}

// pool is a pool of zygotes and the number of sets that use it.
type pool struct {
	*zygote.Pool
	users int
}

// shared has the pools of this process. An unused one stays until CloseIdle, because the
// next sandbox mostly wants the same.
var shared = struct {
	sync.Mutex
	pools map[Kind]*pool
}{pools: map[Kind]*pool{}}

// Set is the zygotes of one sandbox: a pool for each heap size. Its methods may be called
// from several goroutines at once.
type Set struct {
	kind Kind // with the default heap size
	spec func(Kind) zygote.Spec

	// Guarded by shared's lock: a pool's count of users must agree with them.
	byHeap   map[int64]*pool // by size in MiB
	released bool
}

// Acquire returns the zygotes of a kind and starts the first one if there is none yet. spec
// describes how a zygote of a kind is started. The caller must call Release.
func Acquire(kind Kind, spec func(Kind) zygote.Spec) *Set {
	s := &Set{kind: kind, spec: spec, byHeap: map[int64]*pool{}}
	s.Pool(kind.HeapMiB)
	return s
}

// Pool returns the pool for a heap size, which is started on first use. 0 is the size of
// the set's kind.
func (s *Set) Pool(heapMiB int64) *zygote.Pool {
	shared.Lock()
	defer shared.Unlock()
	kind := s.kind
	kind.HeapMiB = cmp.Or(heapMiB, kind.HeapMiB)
	if p := s.byHeap[kind.HeapMiB]; p != nil {
		return p.Pool
	}
	p := shared.pools[kind]
	if p == nil {
		p = &pool{Pool: zygote.NewPool(s.spec(kind), kind.Options)}
		shared.pools[kind] = p
	}
	p.Warm()
	if !s.released { // otherwise the sandbox was closed while a run started, and no second Release comes
		s.byHeap[kind.HeapMiB] = p
		p.users++
	}
	return p.Pool
}

// Release says that the set is no longer used. It may be called on nil.
func (s *Set) Release() {
	if s == nil {
		return
	}
	shared.Lock()
	defer shared.Unlock()
	s.released = true
	for _, p := range s.byHeap {
		p.users--
	}
}

// CloseIdle stops the zygotes that no set uses.
func CloseIdle() error {
	shared.Lock()
	var idle []*pool
	for kind, p := range shared.pools {
		if p.users == 0 {
			idle = append(idle, p)
			delete(shared.pools, kind)
		}
	}
	shared.Unlock()
	var failed error
	for _, p := range idle {
		failed = errors.Join(failed, p.Close())
	}
	return failed
}
