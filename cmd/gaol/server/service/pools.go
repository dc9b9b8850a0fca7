package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"gaol/runtime"
	"gaol/runtime/isolation"
)

// pools keep unused sandboxes with default options, for requests that need a new one. Each
// tenant needs a separate pool, because a sandbox is created in its tenant's cgroup.
type pools struct {
	log     *slog.Logger
	tenants *tenants
	closing closing

	mu     sync.Mutex
	byName map[string]*tenantPool
	work   sync.WaitGroup // of closing pools
}

type tenantPool struct {
	*runtime.Pool
	idle *time.Timer // closes it
	uses int
	gone bool   // no longer in byName
	done func() // its use of the tenant's cgroup
}

const (
	// poolSize is how many sandboxes are kept for each active tenant.
	poolSize = 4

	// poolIdle is how long a pool is kept without a request.
	poolIdle = time.Minute

	// maxPools bounds the pools. Further tenants create each sandbox when they need it.
	maxPools = 64
)

func newPools(log *slog.Logger, ts *tenants, c closing) *pools {
	return &pools{log: log, tenants: ts, closing: c, byName: map[string]*tenantPool{}}
}

// get returns a sandbox from the pool of a tenant, which the caller closes. It returns nil if there
// are too many pools.
func (p *pools) get(ctx context.Context, name string, o runtime.Options) (*runtime.NodeRuntime, error) {
	pool, err := p.acquire(name, o)
	if pool == nil || err != nil {
		return nil, err
	}
	defer p.release(pool, name)
	return pool.Get(ctx)
}

func (p *pools) acquire(name string, o runtime.Options) (*tenantPool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool := p.byName[name]
	if pool == nil {
		if len(p.byName) >= maxPools {
			return nil, nil
		}
		done := p.tenants.use(name)
		created, err := runtime.NewPool(o, runtime.PoolOptions{Size: poolSize, Park: o.Isolation.Check(isolation.Park) == nil})
		if err != nil {
			done()
			return nil, err
		}
		pool = &tenantPool{Pool: created, done: done}
		pool.idle = time.AfterFunc(poolIdle, func() { p.expire(name, pool) })
		p.byName[name] = pool
	}
	pool.uses++
	pool.idle.Stop()
	return pool, nil
}

func (p *pools) release(pool *tenantPool, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool.uses--
	if pool.uses == 0 && !pool.gone {
		pool.idle.Reset(poolIdle)
	}
}

// expire closes a pool that has not been used for some time.
func (p *pools) expire(name string, pool *tenantPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pool.uses == 0 && !pool.gone {
		p.remove(name, pool)
	}
}

// remove closes a pool in the background.
//
// Preconditions: p.mu is held.
func (p *pools) remove(name string, pool *tenantPool) {
	pool.gone = true
	pool.idle.Stop()
	delete(p.byName, name)
	p.work.Go(func() {
		defer pool.done()
		if err := p.closing.do(pool.Close); err != nil {
			p.log.Error("close a pool", "tenant", name, "err", err)
		}
	})
}

// clear closes all pools.
func (p *pools) clear() {
	p.mu.Lock()
	for name, pool := range p.byName {
		p.remove(name, pool)
	}
	p.mu.Unlock()
	p.work.Wait()
}
