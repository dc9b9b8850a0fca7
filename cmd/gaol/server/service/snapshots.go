package service

import (
	"context"
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

var snapshotForm = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const (
	allSnapshots = "tenant-" // begins the names of all tenants' snapshots

	// Bounds of one snapshot, beside the quotas.
	maxSnapshotBytes   = 4 << 30
	maxSnapshotEntries = 250_000
)

// pendingSnapshots are the bytes that are reserved for unfinished snapshots, by
// their names in the store.
type pendingSnapshots struct {
	mu     sync.Mutex
	byName map[string]int64
}

// TakeSnapshot copies the folders of the sandbox to a snapshot with a new name.
func (sb *Sandbox) TakeSnapshot(ctx context.Context, _ *Call, in *requestjson.SnapshotIn) (*resultjson.SnapshotInfo, error) {
	s, t, name := sb.service, sb.tenant(), in.Name
	if err := s.checkSnapshotName(t, name); err != nil {
		return nil, err
	}
	stored := s.snapshotPrefix(t) + name
	bytes, free, err := s.reserveSnapshot(t, stored)
	if err != nil {
		return nil, err
	}
	defer free()
	taken, err := sb.runtime.Snapshot(ctx, runtime.SnapshotOptions{Name: stored, Bytes: bytes, Entries: maxSnapshotEntries})
	if limit, ok := errors.AsType[*hostfs.LimitError](err); ok {
		return nil, Refuse(TooLarge, "the sandbox's folders have %w, which is all that the quotas have left for this snapshot", limit)
	}
	if errors.Is(err, fs.ErrPermission) { // the guest's user may not read a file
		return nil, &Error{Code: Forbidden, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return &resultjson.SnapshotInfo{Name: name, Size: taken.Size}, nil
}

func (s *Service) checkSnapshotName(t *tenant.Tenant, name string) error {
	switch {
	case !snapshotForm().MatchString(name):
		return Refuse(Invalid, "snapshot %q: want 1 to 64 characters of a-z, 0-9 and, not at the start, ._-", name)
	case !s.isOwnSnapshot(s.snapshotPrefix(t) + name):
		return Refuse(Invalid, "snapshot %q: names that begin with %s are reserved for a server's tenants", name, allSnapshots)
	}
	return nil
}

// reserveSnapshot reserves the bytes that a snapshot may have. The caller calls free when the
// snapshot is in the store.
func (s *Service) reserveSnapshot(t *tenant.Tenant, name string) (bytes int64, free func(), err error) {
	p := &s.pending
	p.mu.Lock() // also while the store is read: a finished snapshot must not be missed
	defer p.mu.Unlock()
	sizes, err := s.storedSnapshots()
	if err != nil {
		return 0, nil, err
	}
	for name, size := range p.byName {
		sizes[name] = max(size, sizes[name])
	}
	if _, exists := sizes[name]; exists {
		return 0, nil, Refuse(Conflict, "you have a snapshot of this name; delete it first")
	}
	account := s.Account(t)
	own, err := snapshotRoom(sizes, s.snapshotPrefix(t), account.Limits(), false)
	if err != nil {
		return 0, nil, err
	}
	all, err := snapshotRoom(sizes, allSnapshots, account.ServerLimits(), true)
	if err != nil {
		return 0, nil, err
	}
	// Half of the server's room, so that others can take snapshots meanwhile.
	bytes = min(own, (all+1)/2, maxSnapshotBytes)
	p.byName[name] = bytes
	return bytes, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.byName, name)
	}, nil
}

// snapshotRoom returns how many bytes are left for one more snapshot whose name begins with prefix.
func snapshotRoom(sizes map[string]int64, prefix string, l quota.Limits, server bool) (bytes int64, err error) {
	bytes = l.SnapshotBytes
	count := 0
	for name, size := range sizes {
		if strings.HasPrefix(name, prefix) {
			count++
			bytes -= size
		}
	}
	switch {
	case count >= l.Snapshots:
		return 0, &quota.Exceeded{Limit: "snapshots", Server: server, RetryAfter: snapshotRetry}
	case bytes <= 0:
		return 0, &quota.Exceeded{Limit: "snapshotBytes", Server: server, RetryAfter: snapshotRetry}
	}
	return bytes, nil
}

// snapshotRetry is when to try again: others may have deleted theirs.
const snapshotRetry = time.Minute

// storedSnapshots returns the sizes of all tenants' snapshots by their names in the store; for a trusted
// client, of all snapshots that belong to no tenant.
func (s *Service) storedSnapshots() (map[string]int64, error) {
	store, err := s.snapshotStore()
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
			if s.isOwnSnapshot(name) {
				sizes[name] = i.Size
			}
		}
	}
	return sizes, nil
}

func (s *Service) snapshotStore() (*rootfs.Store, error) {
	store, err := rootfs.Open(s.store)
	if err != nil {
		return nil, err
	}
	return store.Snapshots()
}

// SnapshotList is a list of snapshots.
type SnapshotList struct {
	Snapshots []resultjson.SnapshotInfo `json:"snapshots"`
}

// ListSnapshots lists the tenant's snapshots, sorted by name.
func (s *Service) ListSnapshots(_ context.Context, c *Call, _ *struct{}) (l SnapshotList, err error) {
	sizes, err := s.storedSnapshots()
	if err != nil {
		return l, err
	}
	list := []resultjson.SnapshotInfo{}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if own, ok := strings.CutPrefix(name, s.snapshotPrefix(c.Tenant)); ok {
			list = append(list, resultjson.SnapshotInfo{Name: own, Size: sizes[name]})
		}
	}
	return SnapshotList{list}, nil
}

// DeleteSnapshot deletes a snapshot of the tenant. It fails while a sandbox uses it.
func (s *Service) DeleteSnapshot(_ context.Context, c *Call, in *requestjson.SnapshotName) (None, error) {
	if err := s.checkSnapshotName(c.Tenant, in.Name); err != nil {
		return None{}, err
	}
	store, err := s.snapshotStore()
	if err == nil {
		_, err = store.Remove(s.snapshotPrefix(c.Tenant) + in.Name)
	}
	switch {
	case errors.Is(err, rootfs.ErrNotFound):
		err = Refuse(NotFound, "you have no snapshot %q", in.Name)
	case errors.Is(err, rootfs.ErrInUse):
		err = Refuse(Conflict, "snapshot %q is in use: delete the sandboxes that were created from it first", in.Name)
	}
	return None{}, err
}
