package service

import (
	"io"
	"sync"
	"time"
)

// shared keeps values with sandboxes that are ready, such as pools, for the requests that need the same kind. A value is
// created on first use, and closed when it has not been used for some time. Its methods may be called concurrently.
type shared[K comparable, V io.Closer] struct {
	service *Service

	mu      sync.Mutex
	byKey   map[K]*sharedValue[V]
	closing sync.WaitGroup
}

type sharedValue[V io.Closer] struct {
	open  func() (V, error) // once
	done  func()            // after it has been closed
	uses  int
	since time.Time // it is not in use
	idle  *time.Timer
}

const (
	// sharedIdle is how long an unused value is kept.
	sharedIdle = time.Minute

	// maxShared bounds the values. Above it, an unused one is closed.
	maxShared = 64
)

// errManyShared is the error of [shared.use] if all values are in use.
var errManyShared = exceeded("too many different kinds of sandboxes are in use")

// newShared returns an empty shared.
func newShared[K comparable, V io.Closer](s *Service) *shared[K, V] {
	return &shared[K, V]{service: s, byKey: map[K]*sharedValue[V]{}}
}

// use calls do with the value of a key of a tenant. It calls create for a new one, and again with the next use if that fails.
func (s *shared[K, V]) use(k K, tenant string, create func() (V, error), do func(V) error) error {
	v, err := s.acquire(k, tenant, create)
	if err != nil {
		return err
	}
	opened, err := v.open()
	defer s.release(k, v, err != nil)
	if err != nil {
		return err
	}
	return do(opened)
}

func (s *shared[K, V]) acquire(k K, tenant string, create func() (V, error)) (*sharedValue[V], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.byKey[k]
	if v == nil {
		if len(s.byKey) >= maxShared && !s.evict() {
			return nil, errManyShared
		}
		v = &sharedValue[V]{}
		v.open = sync.OnceValues(func() (V, error) {
			v.done = s.service.tenants.use(tenant)
			return create()
		})
		v.idle = time.AfterFunc(sharedIdle, func() { s.expire(k, v) })
		s.byKey[k] = v
	}
	v.uses++
	v.idle.Stop()
	return v, nil
}

// release ends a use of a value, and forgets a value that could not be opened.
func (s *shared[K, V]) release(k K, v *sharedValue[V], failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.uses--
	switch {
	case failed && s.byKey[k] == v:
		delete(s.byKey, k)
		v.done()
	case !failed && v.uses == 0:
		v.since = time.Now()
		v.idle.Reset(sharedIdle)
	}
}

// expire closes a value that has not been used for some time.
func (s *shared[K, V]) expire(k K, v *sharedValue[V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.uses == 0 && s.byKey[k] == v {
		s.remove(k, v)
	}
}

// evict closes the value that has not been used for the longest time. It returns false if all are in use.
//
// Preconditions: s.mu is held.
func (s *shared[K, V]) evict() bool {
	var oldest *sharedValue[V]
	var key K
	for k, v := range s.byKey {
		if v.uses == 0 && (oldest == nil || v.since.Before(oldest.since)) {
			key, oldest = k, v
		}
	}
	if oldest != nil {
		s.remove(key, oldest)
	}
	return oldest != nil
}

// remove closes an unused value in the background.
//
// Preconditions: s.mu is held.
func (s *shared[K, V]) remove(k K, v *sharedValue[V]) {
	v.idle.Stop()
	delete(s.byKey, k)
	s.closing.Go(func() {
		defer v.done()
		opened, _ := v.open()
		if err := s.service.closeInTurn(opened.Close); err != nil {
			s.service.log.Error("close unused sandboxes", "err", err)
		}
	})
}

// close closes all values. None is in use.
func (s *shared[K, V]) close() {
	s.mu.Lock()
	for k, v := range s.byKey {
		s.remove(k, v)
	}
	s.mu.Unlock()
	s.closing.Wait()
}
