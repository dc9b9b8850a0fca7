package cgroup

import (
	"errors"
	"path"
	"slices"
	"sync"
)

// Pool makes groups below one parent, such as one for each run of a jail, and has the
// next one take over what is dear to make and to remove, and can be as new.
//
// On v1 that is the group in the memory hierarchy. When one is removed the kernel looks
// at every file system on the machine, of which each live jail has five. The peak is
// made to begin anew. What counts a kill for memory, which can't be undone, is not
// handed on; nor is that to which more than next to nothing is still charged, such as
// files in a tmpfs. In the other hierarchies a group has the peak of its tasks, the
// forks refused to it and the processor time that it has used up for now, all of which
// stay: those are made anew.
//
// On v2 it is nothing: a group is one directory, with all of that in it.
//
// What a pool keeps is below the parent, and goes with it. Its methods may be called
// from several goroutines at once.
type Pool struct {
	parent string
	on     backend

	mu     sync.Mutex
	spares []*Group // deleted but for what is kept; the last one ended last
}

// mostSpares bounds what is kept: as many as may end before the next begin. Where there
// have been a thousand live jails, each takes 140 KB of the kernel's memory.
const mostSpares = 2

// NewPool returns a pool of groups below parent.
func NewPool(parent *Group) *Pool { return &Pool{parent: parent.path, on: parent.on} }

// New makes the group of this name below the pool's parent, where none must be, as
// [New] does.
func (p *Pool) New(name string, l Limits) (*Group, error) {
	at := path.Join(p.parent, name)
	if err := check(at, l); err != nil {
		return nil, err
	}
	if spare := p.take(l); spare != nil && p.on.handOn(spare.path, at) != nil {
		// Somebody else has removed it, say. A new one will do.
		if err := errors.Join(spare.Delete(), (&Group{path: at, on: p.on}).Delete()); err != nil {
			return nil, err
		}
	}
	return create(p.on, at, l)
}

// Delete is [Group.Delete] for a group that New made.
func (p *Pool) Delete(g *Group) error {
	if !p.on.strip(g.path, g.limits) {
		return g.Delete()
	}
	if old := p.put(g); old != nil {
		return old.Delete()
	}
	return nil
}

// take takes the last spare that has the same limit, or nil.
func (p *Pool) take(l Limits) *Group {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, g := range slices.Backward(p.spares) {
		if g.limits.Memory == l.Memory {
			p.spares = slices.Delete(p.spares, i, i+1)
			return g
		}
	}
	return nil
}

// put adds a spare. It returns the one that is too many, or nil.
func (p *Pool) put(g *Group) (old *Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares = append(p.spares, g)
	if len(p.spares) > mostSpares {
		old = p.spares[0]
		p.spares = slices.Delete(p.spares, 0, 1)
	}
	return old
}
