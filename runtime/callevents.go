package runtime

import (
	"maps"
	"slices"
)

// follow has a feed told of each call when it is over: first of those that are, as far as
// they are listed.
func (c *calls) follow(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := map[int]bool{}
	for _, p := range c.pending {
		begun[p.place] = true
	}
	for _, left := range c.left {
		begun[left.place] = true
	}
	for place, call := range c.list {
		if !begun[place] {
			f.call(call)
		}
	}
	c.feed = f
	for _, left := range c.left {
		f.call(left.Call)
	}
}

// room has the reader of the control channel wait for who follows, before it takes a call.
// What ends one then waits for nobody.
func (c *calls) room() {
	c.mu.Lock()
	f := c.feed
	c.mu.Unlock()
	if f != nil {
		f.room()
	}
}

// leftCall is a call that the run's end has cut off, and its place in the list.
type leftCall struct {
	Call
	place int
}

// cutOff keeps what there is to tell of the calls that have no answer, and tells it.
//
// Preconditions: c.mu is held.
func (c *calls) cutOff() {
	for _, id := range slices.Sorted(maps.Keys(c.pending)) {
		p := c.pending[id]
		left := leftCall{c.cut(p), p.place}
		c.left = append(c.left, left)
		if c.feed != nil {
			c.feed.call(left.Call)
		}
	}
}
