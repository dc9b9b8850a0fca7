package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gaol/cmd/gaol/server/tenant"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/vfs"
)

// Moved describes a sandbox that another machine takes over. It keeps its own folders, as a snapshot has them. Its processes and
// contexts have ended.
type Moved struct {
	ID       string                     `json:"id"`
	Created  time.Time                  `json:"created"`
	Expires  time.Time                  `json:"expires"`
	Stored   string                     `json:"stored"`   // the name of the snapshot in both stores
	Snapshot string                     `json:"snapshot"` // its id
	Paused   bool                       `json:"paused,omitempty"`
	Request  requestjson.SandboxRequest `json:"request"`
}

const (
	// MovedPrefix begins the names of snapshots of sandboxes that move.
	MovedPrefix = allTenants + "moved-"

	// maxMoved bounds the stored request of a sandbox that can move, in bytes of JSON: mostly globals, and files outside of its own
	// folders.
	maxMoved = 64 << 10
)

// movable returns the request that another machine needs for the sandbox, nil if the sandbox stays: it ends with a session, or has
// folders or ports of this machine.
func movable(c *Call, r *requestjson.SandboxRequest) *requestjson.SandboxRequest {
	if c.Session != nil && !c.Detached || len(r.Mounts)+len(r.HostPorts) > 0 || isOfHost(r.NodeModules) {
		return nil
	}
	kept := *r
	kept.Snapshot = ""
	outside := func(file string) bool { // otherwise the snapshot has it
		return strings.HasPrefix(file, "/") && !slices.ContainsFunc(vfs.Own(vfs.Path(r.Cwd)), func(own vfs.Path) bool {
			return own != "" && strings.HasPrefix(file, string(own)+"/")
		})
	}
	kept.Files, kept.FileBytes = maps.Clone(r.Files), maps.Clone(r.FileBytes)
	maps.DeleteFunc(kept.Files, func(file, _ string) bool { return !outside(file) })
	maps.DeleteFunc(kept.FileBytes, func(file string, _ []byte) bool { return !outside(file) })
	if text, err := json.Marshal(kept); err != nil || len(text) > maxMoved {
		return nil
	}
	return &kept
}

var errMoving = &Error{Code: Unreachable, Err: errors.New("the sandbox is being moved to another machine"), RetryAfter: retryLater}

// maxMoveWait is how long a request waits for a move.
const maxMoveWait = 30 * time.Second

// Enter waits while a sandbox is being moved to another machine. If it is still here, it stays until leave is called.
func (s *Service) Enter(ctx context.Context, id string) (here bool, leave func()) {
	var late <-chan time.Time
	for ctx.Err() == nil {
		s.mu.Lock()
		sb := s.sandboxes[id]
		if sb == nil || sb.moving == nil {
			defer s.mu.Unlock()
			if sb == nil {
				break
			}
			sb.entered++
			return true, sync.OnceFunc(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				sb.entered--
			})
		}
		moving := sb.moving
		s.mu.Unlock()
		if late == nil {
			late = time.After(maxMoveWait)
		}
		select {
		case <-moving:
		case <-ctx.Done():
		case <-late:
			return false, func() {} // the use is refused
		}
	}
	return false, func() {}
}

// Move gives all sandboxes that can move to other machines. If give returns nil, another machine keeps the sandbox.
func (s *Service) Move(ctx context.Context, give func(context.Context, *tenant.Tenant, *Moved) error) error {
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.sandboxes))
	slices.SortFunc(list, func(a, b *Sandbox) int { return cmp.Compare(a.uses+a.entered, b.uses+b.entered) }) // busy ones may take long
	s.mu.Unlock()
	var moves errgroup.Group
	moves.SetLimit(maxMoves)
	for _, sb := range list {
		if sb.request != nil && ctx.Err() == nil && time.Since(sb.tried) > moveAgain {
			moves.Go(func() error { return sb.move(ctx, give) })
		}
	}
	return moves.Wait()
}

// move ends the processes of the sandbox, waits until no request uses it, and gives it to another machine.
func (sb *Sandbox) move(ctx context.Context, give func(context.Context, *tenant.Tenant, *Moved) error) error {
	s := sb.service
	ctx, end, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	moving := make(chan struct{})
	s.mu.Lock()
	sb.moving = moving
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		sb.moving = nil
		s.mu.Unlock()
		close(moving)
	}()
	sb.endPrograms()
	for late := time.Now().Add(milliseconds(s.Settings().DrainMs)); sb.inUse(); time.Sleep(moveEvery) {
		if time.Now().After(late) || ctx.Err() != nil {
			sb.tried = time.Now() // only one move is tried at a time
			return Refuse(Conflict, "sandbox %s: a request still uses it", sb.ID)
		}
	}
	m := &Moved{ID: sb.ID, Created: sb.Created, Expires: sb.expires, Stored: s.peers.NewID(MovedPrefix), Request: *sb.request, Paused: sb.runtime.Paused()}
	taken, err := sb.runtime.Snapshot(ctx, runtime.SnapshotOptions{Name: m.Stored, Bytes: maxSnapshotBytes, Entries: maxKeptEntries})
	if errors.Is(err, runtime.ErrClosed) { // it was deleted meanwhile
		return nil
	} else if err != nil {
		return err
	}
	defer s.forgetMoved(m.Stored)
	m.Snapshot = taken.ID
	if err := give(ctx, sb.tenant(), m); err != nil {
		return err
	}
	sb.held.Moved.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	sb.remove()
	return nil
}

// maxMoves is how many sandboxes move at the same time, so that one in use does not delay the others.
const maxMoves = 4

// moveAgain is the time between attempts to move a busy sandbox. During an attempt, new requests wait.
const moveAgain = 20 * time.Second

// moveEvery is how often a move looks whether requests still use the sandbox.
const moveEvery = 10 * time.Millisecond

func (sb *Sandbox) isMoving() bool {
	sb.service.mu.Lock()
	defer sb.service.mu.Unlock()
	return sb.moving != nil
}

func (sb *Sandbox) inUse() bool {
	sb.service.mu.Lock()
	defer sb.service.mu.Unlock()
	return sb.uses > 0 || sb.entered > 0
}

// endPrograms ends the processes and contexts of the sandbox, and waits for them.
func (sb *Sandbox) endPrograms() {
	l := &sb.longLived
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.byID))
	l.mu.Unlock()
	for _, e := range all {
		switch e := e.(type) {
		case *Process:
			e.process.Kill()
		case *Context:
			_ = e.context.Close() // it may have ended
		}
	}
	for _, e := range all {
		<-e.common().ended
	}
}

// forgetMoved removes the snapshot of a sandbox that has moved.
func (s *Service) forgetMoved(name string) {
	store, err := rootfs.OpenSnapshots(s.store)
	if err == nil {
		_, err = store.Remove(name)
	}
	if err != nil && !errors.Is(err, rootfs.ErrNotFound) && !errors.Is(err, rootfs.ErrInUse) {
		s.log.Error("remove the snapshot of a sandbox that has moved", "name", name, "err", err)
	}
}

// forgetAllMoved removes the snapshots of sandboxes that have ended with an earlier server.
func (s *Service) forgetAllMoved() {
	store, err := rootfs.OpenSnapshots(s.store)
	if err != nil || s.trusted { // the first use reports the error, and a trusted client may share its store with a server
		return
	}
	names, _ := store.Names()
	for _, name := range names {
		if strings.HasPrefix(name, MovedPrefix) {
			s.forgetMoved(name)
		}
	}
}

// Disown removes a sandbox that was adopted, but that the other machine has kept.
func (s *Service) Disown(id string) {
	_ = s.closeThose(func(sb *Sandbox) bool { return sb.ID == id }) // which is logged
}

// Adopt takes over a sandbox of another machine, whose snapshot this one has got.
func (s *Service) Adopt(ctx context.Context, t *tenant.Tenant, m *Moved) error {
	_, err := s.createSandbox(ctx, &Call{Service: s, Tenant: t}, &m.Request, m)
	if err != nil {
		s.forgetMoved(m.Stored)
	}
	return err
}
