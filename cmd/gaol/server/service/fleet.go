package service

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"

	"gaol/cmd/gaol/server/tenant"
	"gaol/rootfs"
	"gaol/rootfs/layer"
)

// Peers are the other machines of a fleet.
type Peers interface {
	// NewID returns a new id with a prefix, which is not used again and cannot be guessed.
	NewID(prefix string) string

	// Lost returns why the sandbox with an id is not here, or nil if it never was.
	Lost(id string) error

	// Claim reserves the name of a new snapshot on all machines. It returns [fs.ErrExist] for a name in use.
	Claim(ctx context.Context, t *tenant.Tenant, name string) error

	// Record sets the id of the snapshot of a claimed name. Without an id, the name is free again.
	Record(ctx context.Context, t *tenant.Tenant, name, id string) error

	// Copy gives another machine a copy of a snapshot that this one keeps. Without other machines it does nothing.
	Copy(ctx context.Context, t *tenant.Tenant, name string) error

	// Delete deletes the copies of all machines: its own one by own.
	Delete(ctx context.Context, kind string, t *tenant.Tenant, name string, own func() error) error
}

// noPeers is a machine without others.
type noPeers struct{}

func (noPeers) NewID(prefix string) string                                   { return prefix + strings.ToLower(rand.Text()) }
func (noPeers) Lost(string) error                                            { return nil }
func (noPeers) Claim(context.Context, *tenant.Tenant, string) error          { return nil }
func (noPeers) Record(context.Context, *tenant.Tenant, string, string) error { return nil }
func (noPeers) Copy(context.Context, *tenant.Tenant, string) error           { return nil }
func (noPeers) Delete(_ context.Context, _ string, _ *tenant.Tenant, _ string, own func() error) error {
	return own()
}

// Busy returns how much of the server's limits active and waiting runs use: 0 is nothing, and with 1 no other run can start.
func (s *Service) Busy() float64 { return s.quotas.Busy() }

// Count returns the number of sandboxes.
func (s *Service) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sandboxes)
}

// Kinds of named content.
const (
	KeptSnapshot = "snapshot"
	KeptImage    = "image"
)

// Kept identifies a snapshot or an image.
type Kept struct {
	ID  string `json:"id"`
	Own bool   `json:"own"` // it is a tenant's, and not an image of the server
}

// FindKept returns the snapshot or the image with a name that this machine keeps and the tenant may use, nil if there is none.
func (s *Service) FindKept(kind string, t *tenant.Tenant, name string) *Kept {
	if i, err := s.keptOf(kind).find(t, name); err == nil {
		return &Kept{i.ID, true}
	}
	if kind == KeptImage {
		if i, err := s.serverImage(name); err == nil && i != nil {
			return &Kept{i.ID, false}
		}
	}
	return nil
}

func (s *Service) keptOf(kind string) *kept {
	if kind == KeptSnapshot {
		return s.snapshots
	}
	return s.images
}

// SendKept writes a snapshot or an image to another machine.
func (s *Service) SendKept(kind, id string, w io.Writer) error {
	store, err := s.keptOf(kind).open(s.store)
	if err != nil {
		return err
	}
	i, err := store.Lookup(id)
	if errors.Is(err, rootfs.ErrNotFound) {
		return Refuse(NotFound, "no %s %s", kind, id)
	} else if err != nil {
		return err
	}
	return i.Send(w)
}

// ReceiveKept keeps what SendKept of another machine has written under a name, within the tenant's quotas. It returns an error that
// wraps [rootfs.ErrDigest] for other content.
func (s *Service) ReceiveKept(ctx context.Context, kind string, t *tenant.Tenant, name string, k Kept, r io.Reader) error {
	of := s.keptOf(kind)
	stored, limits := name, layer.Limits{Bytes: maxImageBytes, Entries: maxKeptEntries}
	if k.Own {
		var free func()
		var err error
		if stored, limits.Bytes, free, err = of.reserve(t, name); err != nil {
			return err
		}
		defer free()
	}
	store, err := of.open(s.store)
	if err == nil {
		_, err = store.Receive(ctx, k.ID, stored, limits, r)
	}
	return err
}
