package tenant

import (
	"context"
	"fmt"
)

// Tenant is a user or a program that uses the server. Sandboxes belong to a tenant.
type Tenant struct {
	// Name is "uid:N" for the local user N, or "token:NAME".
	Name string

	// Peer has the caller's credentials, nil for tokens.
	Peer *Peer

	// Admin is true for root and for tokens with this right: they may read the metrics.
	Admin bool
}

// Peer has the credentials that a process had when it connected.
type Peer struct {
	PID    int32
	UID    uint32
	GID    uint32
	Groups []uint32 // supplementary ones
}

// ofPeer returns the tenant of a local user.
func ofPeer(p *Peer) *Tenant {
	return &Tenant{Name: fmt.Sprintf("uid:%d", p.UID), Peer: p, Admin: p.UID == 0}
}

type contextKey struct{}

// NewContext returns a context with the tenant of a request.
func NewContext(ctx context.Context, t *Tenant) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// FromContext returns the tenant of a request. It panics without one: every request has one.
func FromContext(ctx context.Context) *Tenant { return ctx.Value(contextKey{}).(*Tenant) }

// Lookup returns the tenant of a request, nil for one that needs none.
func Lookup(ctx context.Context) *Tenant {
	t, _ := ctx.Value(contextKey{}).(*Tenant)
	return t
}
