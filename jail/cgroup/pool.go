package cgroup

import (
	"fmt"
	"path"
	"slices"
	"sync"
)

// Pool makes groups below one parent, such as one for each run of a jail. A group that
// has ended leaves its name to a later one, and on v1 its group in the memory hierarchy.
//
// Names are reused because the kernel caches the lookup of each name that no longer
// exists until the parent is removed: 200 bytes for each name and hierarchy.
//
// The memory group is reused because the kernel keeps one that was removed for as long
// as anything is charged to it: a file in a tmpfs, or a page of the image that its
// process was the first to read. Thousands of runs would leave thousands of them. Making
// and removing one is also slow: the kernel looks at every file system on the machine, of
// which each live jail has five. The peak is reset, and memory kills of earlier groups
// are subtracted. In the other hierarchies the peak of tasks, refused forks and processor
// time can't be reset: those groups are made anew.
//
// A memory group is not reused while more than a little is charged to it. Few of those
// are kept, and each that is removed holds 2 MB or more: the number that stays in the
// kernel depends on the memory in use, and not on the number of runs.
//
// On v2 only the name is reused: a group is one directory, and its counters can't be
// reset. Memory that is still charged to a removed group keeps that one in the kernel.
//
// What a pool keeps is below the parent, and is removed with it. Its methods may be
// called from several goroutines at once.
type Pool struct {
	parent string
	on     backend

	mu     sync.Mutex
	made   int      // names so far
	spares []*Group // have ended; the last one ended last
}

// mostCharged is how many spares are kept because too much is charged to them: it may be
// freed late, or with a file. Each takes up to 140 KB of kernel memory.
const mostCharged = 4

// NewPool returns a pool of groups below parent. Nothing else may make groups there
// whose names are "r" and a number.
func NewPool(parent *Group) *Pool { return &Pool{parent: parent.path, on: parent.on} }

// New makes a group with these limits. Where too much is charged to the spares, its
// memory group is new, and if there are more than a few spares, the oldest is removed.
func (p *Pool) New(l Limits) (*Group, error) {
	if err := check(p.parent, l); err != nil {
		return nil, err
	}
	g, old := p.take(l)
	if old != nil {
		if err := old.Delete(); err != nil {
			return nil, err
		}
	}
	if err := g.create(); err != nil {
		return nil, err
	}
	return g, nil
}

// take returns the group that is made next, and the spare that is removed before, or nil.
func (p *Pool) take(l Limits) (g, old *Group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, spare := range slices.Backward(p.spares) {
		if kills, ok := p.on.reuse(spare.path, spare.limits, l); ok {
			p.spares = slices.Delete(p.spares, i, i+1)
			return &Group{path: spare.path, on: p.on, limits: l, earlierKills: kills}, nil
		}
	}
	g = &Group{on: p.on, limits: l}
	if len(p.spares) > mostCharged {
		old = p.spares[0]
		p.spares = slices.Delete(p.spares, 0, 1)
		g.path = old.path
	} else {
		p.made++
		g.path = path.Join(p.parent, fmt.Sprintf("r%d", p.made))
	}
	return g, old
}

// Delete ends a group that New made, which must hold no process: for the methods of g
// it is gone, whatever a later group of that name does.
func (p *Pool) Delete(g *Group) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return nil
	}
	if err := p.on.retire(g.path); err != nil {
		return err
	}
	g.ended = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares = append(p.spares, &Group{path: g.path, on: p.on, limits: g.limits})
	return nil
}
