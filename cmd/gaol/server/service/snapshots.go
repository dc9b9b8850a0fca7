package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/lazyregexp"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/vfs/hostfs"
)

var keptForm = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const (
	allTenants = "tenant-" // begins the names of all tenants' snapshots and images

	// Bounds of one snapshot or image, in addition to the quotas. The entries of an image are the files that its steps add.
	maxSnapshotBytes = 4 << 30
	maxImageBytes    = 16 << 30
	maxKeptEntries   = 250_000
)

// kept are the snapshots or the images of all tenants.
type kept struct {
	service *Service
	kind    string // snapshot, or image
	open    func(dir string) (*rootfs.Store, error)
	most    int64 // bytes of one
	limits  func(quota.Limits) (count int, bytes int64)

	mu      sync.Mutex
	pending map[string]int64 // bytes that are reserved for unfinished ones, by their names in the store
}

// keep initializes the snapshots and the images of tenants.
func (s *Service) keep() {
	s.snapshots = &kept{
		service: s, kind: "snapshot", open: rootfs.OpenSnapshots, most: maxSnapshotBytes, pending: map[string]int64{},
		limits: func(l quota.Limits) (int, int64) { return l.Snapshots, l.SnapshotBytes },
	}
	s.images = &kept{
		service: s, kind: "image", open: rootfs.Open, most: maxImageBytes, pending: map[string]int64{},
		limits: func(l quota.Limits) (int, int64) { return l.Images, l.ImageBytes },
	}
}

// prefix is the prefix of the names of a tenant's snapshots and images in their stores. It is a hash because the names of tenants may have any length. A
// trusted client's have the names that gaol snapshot ls and gaol image ls show.
func (s *Service) prefix(t *tenant.Tenant) string {
	if s.trusted {
		return ""
	}
	sum := sha256.Sum256([]byte(t.Name))
	return allTenants + hex.EncodeToString(sum[:16]) + "."
}

// isOfTenant reports whether a name in a store is reserved for a tenant of a server.
func isOfTenant(name string) bool { return strings.HasPrefix(name, allTenants) }

// TakeSnapshot copies the folders of the sandbox to a snapshot with a new name.
func (sb *Sandbox) TakeSnapshot(ctx context.Context, _ *Call, in *requestjson.SnapshotIn) (_ *resultjson.SnapshotInfo, err error) {
	peers, t := sb.service.peers, sb.tenant()
	stored, bytes, free, err := sb.service.snapshots.reserve(t, in.Name)
	if err != nil {
		return nil, err
	}
	defer free()
	if err := peers.Claim(ctx, t, in.Name); errors.Is(err, fs.ErrExist) {
		return nil, sb.service.snapshots.exists(in.Name)
	} else if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = peers.Record(context.WithoutCancel(ctx), t, in.Name, "") // else the claim expires
		}
	}()
	taken, err := sb.runtime.Snapshot(ctx, runtime.SnapshotOptions{Name: stored, Bytes: bytes, Entries: maxKeptEntries})
	if limit, ok := errors.AsType[*hostfs.LimitError](err); ok {
		return nil, Refuse(TooLarge, "the sandbox's folders have %w, which is all that the quotas have left for this snapshot", limit)
	}
	if errors.Is(err, fs.ErrPermission) { // the guest's user may not read a file
		return nil, &Error{Code: Forbidden, Err: err}
	}
	if err != nil {
		return nil, err
	}
	if err = peers.Copy(ctx, t, in.Name); err == nil {
		err = peers.Record(ctx, t, in.Name, taken.ID)
	}
	if err != nil {
		return nil, errors.Join(err, sb.service.snapshots.remove(t, in.Name))
	}
	return &resultjson.SnapshotInfo{Name: in.Name, Size: taken.Size}, nil
}

// exists returns the error for a name that is in use.
func (k *kept) exists(name string) error {
	return Refuse(Conflict, "%s %q: you have one of this name; delete it first", k.kind, name)
}

// check returns the name in the store of a tenant's snapshot or image.
func (k *kept) check(t *tenant.Tenant, name string) (stored string, err error) {
	stored = k.service.prefix(t) + name
	switch {
	case !keptForm().MatchString(name):
		return "", Refuse(Invalid, "%s %q: want 1 to 64 characters of a-z, 0-9 and, not at the start, ._-", k.kind, name)
	case isOfTenant(stored) == k.service.trusted:
		return "", Refuse(Invalid, "%s %q: names that begin with %s are reserved for a server's tenants", k.kind, name, allTenants)
	}
	return stored, nil
}

// find returns a snapshot or image of a tenant, or an error that wraps [rootfs.ErrNotFound].
func (k *kept) find(t *tenant.Tenant, name string) (*rootfs.Image, error) {
	stored, err := k.check(t, name)
	if err != nil {
		return nil, rootfs.ErrNotFound
	}
	store, err := k.open(k.service.store)
	if err != nil {
		return nil, err
	}
	return store.Lookup(stored)
}

// reserve reserves the bytes that a new snapshot or image may have, and returns its name in the store. The caller calls
// free when the store has it.
func (k *kept) reserve(t *tenant.Tenant, name string) (stored string, bytes int64, free func(), err error) {
	if stored, err = k.check(t, name); err != nil {
		return "", 0, nil, err
	}
	k.mu.Lock() // also while the store is read: a finished one must not be missed
	defer k.mu.Unlock()
	sizes, err := k.sizes()
	if err != nil {
		return "", 0, nil, err
	}
	for other, size := range k.pending {
		sizes[other] = max(size, sizes[other])
	}
	if _, exists := sizes[stored]; exists {
		return "", 0, nil, k.exists(name)
	}
	account := k.service.Account(t)
	own, err := k.room(sizes, k.service.prefix(t), account.Limits(), false)
	if err != nil {
		return "", 0, nil, err
	}
	all, err := k.room(sizes, "", account.ServerLimits(), true)
	if err != nil {
		return "", 0, nil, err
	}
	// Half of the server's room, so that others can keep more meanwhile.
	bytes = min(own, (all+1)/2, k.most)
	k.pending[stored] = bytes
	return stored, bytes, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.pending, stored)
	}, nil
}

// room returns how many bytes are left for one more whose name begins with prefix.
func (k *kept) room(sizes map[string]int64, prefix string, l quota.Limits, server bool) (bytes int64, err error) {
	most, bytes := k.limits(l)
	count := 0
	for name, size := range sizes {
		if strings.HasPrefix(name, prefix) {
			count++
			bytes -= size
		}
	}
	switch {
	case count >= most:
		return 0, &quota.Exceeded{Limit: k.kind + "s", Server: server, RetryAfter: keptRetry}
	case bytes <= 0:
		return 0, &quota.Exceeded{Limit: k.kind + "Bytes", Server: server, RetryAfter: keptRetry}
	}
	return bytes, nil
}

// keptRetry is when to try again: others may have deleted theirs.
const keptRetry = time.Minute

// sizes returns the sizes of what all tenants keep by their names in the store; for a trusted client, of all that belong
// to no tenant.
func (k *kept) sizes() (map[string]int64, error) {
	store, err := k.open(k.service.store)
	if err != nil {
		return nil, err
	}
	list, err := store.List()
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	for _, i := range list {
		for _, name := range i.Names {
			if isOfTenant(name) != k.service.trusted {
				sizes[name] = i.Size
			}
		}
	}
	return sizes, nil
}

// list returns the names that a tenant has given, sorted, with the sizes.
func (k *kept) list(t *tenant.Tenant) ([]resultjson.SnapshotInfo, error) {
	sizes, err := k.sizes()
	list := []resultjson.SnapshotInfo{}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if own, ok := strings.CutPrefix(name, k.service.prefix(t)); ok {
			list = append(list, resultjson.SnapshotInfo{Name: own, Size: sizes[name]})
		}
	}
	return list, err
}

// removeAll deletes one of the tenant, on all machines. It fails while a sandbox uses it.
func (k *kept) removeAll(ctx context.Context, t *tenant.Tenant, name string) error {
	own := func() error { return k.remove(t, name) }
	if t.Forwarded {
		return own()
	}
	return k.service.peers.Delete(ctx, k.kind, t, name, own)
}

// remove deletes one of the tenant on this machine.
func (k *kept) remove(t *tenant.Tenant, name string) error {
	stored, err := k.check(t, name)
	if err != nil {
		return err
	}
	store, err := k.open(k.service.store)
	if err == nil {
		_, err = store.Remove(stored)
	}
	switch {
	case errors.Is(err, rootfs.ErrNotFound):
		err = Refuse(NotFound, "you have no %s %q", k.kind, name)
	case errors.Is(err, rootfs.ErrInUse):
		err = Refuse(Conflict, "%s %q is in use: delete the sandboxes that were created from it first", k.kind, name)
	}
	return err
}

// SnapshotList is a list of snapshots.
type SnapshotList struct {
	Snapshots []resultjson.SnapshotInfo `json:"snapshots"`
	resultjson.MissingNodes
}

// ListSnapshots lists the tenant's snapshots, sorted by name.
func (s *Service) ListSnapshots(_ context.Context, c *Call, _ *struct{}) (SnapshotList, error) {
	list, err := s.snapshots.list(c.Tenant)
	return SnapshotList{Snapshots: list}, err
}

// DeleteSnapshot deletes a snapshot of the tenant. It fails while a sandbox uses it.
func (s *Service) DeleteSnapshot(ctx context.Context, c *Call, in *requestjson.SnapshotName) (None, error) {
	return None{}, s.snapshots.removeAll(ctx, c.Tenant, in.Name)
}
