package cgroup

import (
	"fmt"
	"path"
	"slices"
	"sync"
	"time"
)

// Pool creates groups below one parent, such as one for each run of a jail. A deleted group
// leaves its name to a later one and, on v1, its group in the memory hierarchy or, for a second, all of its
// groups.
//
// Names are reused because the kernel caches the failed lookup of each removed name until
// the parent is removed: 200 bytes for each name and hierarchy.
//
// The memory group is reused because the kernel keeps a removed one for as long as anything
// is charged to it: a file in a tmpfs, or a page of the image that one of its processes was
// the first to read. Thousands of runs would leave thousands of them. Creating and removing
// one is also slow: the kernel looks at every file system on the machine, and each live jail
// has five. The pool resets the peak, and subtracts the OOM kills of earlier groups. In the
// other hierarchies the peak of tasks, refused forks and processor time can't be reset:
// those groups are created anew.
//
// A memory group is not reused while more than a little is charged to it. The pool keeps
// few such groups. Each removed group holds 2 MB or more, so the number that the kernel
// keeps depends on the memory in use, not on the number of runs.
//
// The groups of the other hierarchies are reused if nothing in them differs from new ones: the
// limits are the same, there never was more than one task, no fork was refused, and the processor
// time can be reset. Creating and removing them takes a sixth of the time of a small run.
//
// On v2 only the name is reused: a group is one directory, and its counters can't be
// reset. A removed group stays in the kernel while memory is charged to it.
//
// Pooled groups are below the parent and are removed with it. A Pool is safe for
// concurrent use.
type Pool struct {
	parent string
	on     backend

	mu      sync.Mutex
	made    int      // names so far
	spares  []*Group // deleted groups; the last one was deleted last
	closed  bool
	cleanup *time.Timer // of spares whose groups all exist; nil: there are none
}

// keepTime is how long the groups of all hierarchies are kept: an idle pool should use little
// memory of the kernel.
const keepTime = time.Second

// maxCharged is how many spares are kept because too much is charged to them: the memory
// may be freed late, or with a file. Each uses up to 140 KB of kernel memory.
const maxCharged = 4

// NewPool returns a pool of groups below parent. Only the pool may create groups there
// with names of "r" and a number.
func NewPool(parent *Group) *Pool { return &Pool{parent: parent.path, on: parent.on} }

// PoolName returns the name of the nth group that a pool creates, counted from 1. Pools reuse names, so
// n stays within a few of the largest number of groups that existed at the same time.
func PoolName(n int) string { return fmt.Sprintf("r%d", n) }

// NewIdentifiedPool returns a pool whose groups have an ID. The error is a [*MissingError] if
// the machine has only v1 hierarchies.
func NewIdentifiedPool(parent *Group) (*Pool, error) {
	on, err := parent.on.identified()
	return &Pool{parent: parent.path, on: on}, err
}

// CheckIdentified reports whether this machine can have pools whose groups have an ID.
func CheckIdentified() error {
	on, err := machineBackend()
	if err == nil {
		_, err = on.identified()
	}
	return err
}

// New creates a group with these limits. If too much memory is charged to every spare, the
// memory group is new; if there are more than a few such spares, the oldest is removed.
func (p *Pool) New(l Limits) (*Group, error) {
	g, spare, evicted := p.next(l)
	var err error
	switch {
	case evicted:
		err = spare.Delete()
	case spare == nil || !spare.complete:
	case spare.limits == l && p.on.isComplete(g.path):
		return g, p.on.renew(g.path)
	default:
		err = p.on.release(g.path)
	}
	if err == nil {
		err = g.create()
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// next returns a group that does not exist yet, and the spare that has its path, or nil. An evicted
// spare must be deleted first.
func (p *Pool) next(l Limits) (g, spare *Group, evicted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, spare := range slices.Backward(p.spares) {
		if kills, ok := p.on.reuse(spare.path, spare.limits, l); ok {
			p.spares = slices.Delete(p.spares, i, i+1)
			return &Group{path: spare.path, on: p.on, limits: l, earlierKills: kills}, spare, false
		}
	}
	if len(p.spares) > maxCharged {
		spare = p.spares[0]
		p.spares = slices.Delete(p.spares, 0, 1)
		return &Group{path: spare.path, on: p.on, limits: l}, spare, true
	}
	p.made++
	return &Group{path: path.Join(p.parent, PoolName(p.made)), on: p.on, limits: l}, nil, false
}

// Delete deletes a group that New created. The group must hold no process. used is its whole usage,
// or zero if that is unknown. After that, g's methods treat the group as missing, even when
// a later group has its name.
func (p *Pool) Delete(g *Group, used Usage) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deleted {
		return nil
	}
	spare := &Group{path: g.path, on: p.on, limits: g.limits}
	spare.complete = g.refused.Load() == nil && !g.wasFrozen.Load() && p.on.reset(g.path, used, g.limits)
	if !spare.complete {
		if err := p.on.release(g.path); err != nil {
			return err
		}
	}
	g.deleted = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares = append(p.spares, spare)
	if spare.complete && p.cleanup == nil && !p.closed {
		p.cleanup = time.AfterFunc(keepTime, p.removeOld)
	}
	return nil
}

// removeOld removes the groups of spares except for the parts that a pool keeps.
func (p *Pool) removeOld() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanup = nil
	if p.closed {
		return
	}
	for _, spare := range p.spares {
		// A group that can't be released now is reused, or removed with the parent.
		spare.complete = spare.complete && p.on.release(spare.path) != nil
	}
}

// Close must be called before the parent is removed: afterwards another parent may reuse its
// path.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.cleanup != nil {
		p.cleanup.Stop()
	}
}
