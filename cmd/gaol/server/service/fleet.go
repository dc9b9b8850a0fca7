package service

import (
	"errors"
	"slices"

	"gaol/cmd/gaol/server/tenant"
)

// Busy returns how much of the server's limits active and waiting runs use: 0 is nothing, and with 1 no other run can start.
func (s *Service) Busy() float64 { return s.quotas.Busy() }

// Kinds of what tenants keep under names of their own.
const (
	KeptSnapshot = "snapshot"
	KeptImage    = "image"
)

// KeptKey names a tenant's snapshot or image among those of all tenants. Without a tenant it names an image of the server.
func (s *Service) KeptKey(kind string, t *tenant.Tenant, name string) string {
	if t == nil {
		return kind + "/" + name
	}
	return kind + "/" + s.prefix(t) + name
}

// HasKept reports whether this machine keeps a snapshot or an image that the tenant may use.
func (s *Service) HasKept(kind string, t *tenant.Tenant, name string) bool {
	if kind == KeptSnapshot {
		_, err := s.snapshots.find(t, name)
		return err == nil
	}
	_, err := s.images.find(t, name)
	if err != nil {
		_, err = s.serverImage(name)
	}
	return err == nil
}

// KeptKeys returns the keys of all snapshots and images of tenants, and those of the server's images, which no tenant has made.
func (s *Service) KeptKeys() (keys []string, err error) {
	for _, k := range []*kept{s.snapshots, s.images} {
		store, failed := k.open(s.store)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		names, failed := store.Names()
		err = errors.Join(err, failed)
		for _, name := range names {
			keys = append(keys, k.kind+"/"+name)
		}
	}
	slices.Sort(keys)
	return keys, err
}
