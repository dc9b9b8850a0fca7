package server

import (
	"container/list"
	"fmt"
	"net"
	"net/http"
	"sync"

	"golang.org/x/sys/unix"
)

// Bounds of the connections of all listeners together, and of one user, or one address of TCP.
const (
	maxConnections = 16 << 10
	maxOfOwner     = 4 << 10
)

// connections bounds the connections. Above a bound, the connection that has been idle for longest is
// closed, so that idle connections never keep out others.
type connections struct {
	max, maxOfOwner int

	mu     sync.Mutex
	count  int
	owners map[string]*owner
}

// owner is a user or an address.
type owner struct {
	count int
	idle  *list.List // of *conn, the one that has been idle for longest first
}

func newConnections() *connections {
	c := &connections{max: maxConnections, maxOfOwner: maxOfOwner, owners: map[string]*owner{}}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur/2 < uint64(c.max) { // sandboxes need files, too
		c.max = int(files.Cur / 2)
		c.maxOfOwner = c.max / 4
	}
	return c
}

// add counts a connection. It returns the one to close for it, which may be the new one.
func (cs *connections) add(c *conn) (excess *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	o := cs.owners[c.owner]
	if o == nil {
		o = &owner{idle: list.New()}
		cs.owners[c.owner] = o
	}
	switch {
	case o.count >= cs.maxOfOwner:
		excess = o.longestIdle(c)
	case cs.count >= cs.max:
		excess = cs.idlest().longestIdle(c)
	}
	o.count++
	cs.count++
	if excess != c {
		c.idle = o.idle.PushBack(c) // until it has sent something
	}
	return excess
}

// longestIdle removes the connection that has been idle for longest from the list, and returns it, or c
// if all are active.
func (o *owner) longestIdle(c *conn) *conn {
	front := o.idle.Front()
	if front == nil {
		return c
	}
	c = o.idle.Remove(front).(*conn)
	c.idle = nil
	return c
}

// idlest returns the owner of most idle connections.
//
// Preconditions: cs.mu is held, and there is a connection.
func (cs *connections) idlest() (most *owner) {
	for _, o := range cs.owners {
		if most == nil || o.idle.Len() > most.idle.Len() {
			most = o
		}
	}
	return most
}

// remove forgets a connection that has been closed.
func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.removed {
		return
	}
	c.removed = true
	o := cs.owners[c.owner]
	cs.setIdle(o, c, false)
	o.count--
	cs.count--
	if o.count == 0 {
		delete(cs.owners, c.owner)
	}
}

// follow is an [http.Server.ConnState].
func (cs *connections) follow(outer net.Conn, state http.ConnState) {
	c := innerConn(outer)
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if !c.removed && state != http.StateNew && state != http.StateClosed {
		cs.setIdle(cs.owners[c.owner], c, state == http.StateIdle)
	}
}

// setIdle adds a connection to the idle ones of its owner, or removes it.
//
// Preconditions: cs.mu is held.
func (cs *connections) setIdle(o *owner, c *conn, idle bool) {
	switch {
	case idle && c.idle == nil:
		c.idle = o.idle.PushBack(c)
	case !idle && c.idle != nil:
		o.idle.Remove(c.idle)
		c.idle = nil
	}
}

// ownerOf names the user or address that has opened a connection.
func ownerOf(c *conn) string {
	if c.tenant != nil {
		return c.tenant.Name
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return networkOf(a.AddrPort().Addr())
	}
	return fmt.Sprintf("unknown %v", c.err != nil)
}
