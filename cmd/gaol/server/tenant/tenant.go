package tenant

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"

	"gaol/internal/kernfile"
	"gaol/runtime"

	"golang.org/x/sys/unix"
)

// Tenant is a user or a program that uses the server. Sandboxes belong to a tenant.
type Tenant struct {
	// Name is "uid:N" for the local user N, or "token:NAME".
	Name string

	// Peer holds the caller's credentials, nil for tokens.
	Peer *Peer

	// Admin is true for root and for tokens with this right: they may read the metrics.
	Admin bool

	// Forwarded is true for a request that another node of the fleet has forwarded: it is served here.
	Forwarded bool
}

// Peer holds the credentials that a process had when it connected.
type Peer struct {
	PID int32
	runtime.MountUser
}

type contextKey struct{}

// NewContext returns a context with the tenant of a request.
func NewContext(ctx context.Context, t *Tenant) context.Context {
	return context.WithValue(ctx, contextKey{}, t)
}

// FromContext returns the tenant of a request. It panics without one: every request has one.
func FromContext(ctx context.Context) *Tenant { return ctx.Value(contextKey{}).(*Tenant) }

// Lookup returns the tenant of a request, nil for requests without a tenant.
func Lookup(ctx context.Context) *Tenant {
	t, _ := ctx.Value(contextKey{}).(*Tenant)
	return t
}

// OfConn returns the tenant at the other end of a unix socket: the user that the process had when
// it connected.
func OfConn(c *net.UnixConn) (*Tenant, error) {
	var p *Peer
	err := kernfile.Control(c, func(fd int) (err error) {
		p, err = peerOf(fd)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("credentials of the peer: %w", err)
	}
	return &Tenant{Name: fmt.Sprintf("uid:%d", p.UID), Peer: p, Admin: p.UID == 0}, nil
}

// overflow is the user id of a peer whose user is not mapped in this user namespace.
const overflow = 65534

func peerOf(fd int) (*Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, err
	}
	if cred.Uid == overflow {
		return nil, fmt.Errorf("user %d may be any user of another user namespace", cred.Uid)
	}
	groups, err := peerGroups(fd)
	return &Peer{cred.Pid, runtime.MountUser{UID: int(cred.Uid), GID: int(cred.Gid), Groups: groups}}, err
}

// maxGroups is NGROUPS_MAX.
const maxGroups = 65536

// peerGroups returns the supplementary groups of a peer (SO_PEERGROUPS).
func peerGroups(fd int) ([]int, error) {
	size := 64 * 4
	for {
		buf := make([]byte, size)
		n, err := getsockopt(fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS, buf)
		if err == unix.ERANGE && n > size && n <= 4*maxGroups {
			size = n
			continue
		}
		if err != nil {
			return nil, err
		}
		groups := make([]int, n/4)
		for i := range groups {
			groups[i] = int(binary.NativeEndian.Uint32(buf[4*i:]))
		}
		return groups, nil
	}
}
