package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"gaol/jail"
	"gaol/jail/zygote"
	"gaol/rootfs"
)

// forkable are the major versions of Node that a zygote is known to work with: others
// may have threads, or an exit code, where a zygote does not look for them.
var forkable = []string{"22", "24", "26"}

// check refuses an image whose Node the launcher can't start.
func (l Launcher) check(image *rootfs.Image) error {
	if l != LauncherZygote {
		return nil
	}
	if err := image.CanFork(); err != nil {
		return optionError("Launcher", "the zygote can't be had, use LauncherExec: %w: %w", err, ErrUnsupported)
	}
	major, _, _ := strings.Cut(image.Node, ".")
	if !slices.Contains(forkable, major) {
		return optionError("Launcher", "the zygote works with Node %s, the image has %s, which takes LauncherExec: %w",
			strings.Join(forkable, ", "), image.Node, ErrUnsupported)
	}
	return nil
}

// zygoteKind is what must be alike for two runtimes to share zygotes.
type zygoteKind struct {
	image, node  string // host folder, guest path
	heapMiB      int64
	cgroupParent string
	options      ZygoteOptions
}

// zygotes is a pool of zygotes and who holds it.
type zygotes struct {
	kind    zygoteKind
	pool    *zygote.Pool
	holders int
}

// shared are this process's pools. One that nobody holds stays, since the next
// runtime mostly wants the same, until CloseIdle.
var shared struct {
	sync.Mutex
	list map[zygoteKind]*zygotes
}

func holdZygotes(kind zygoteKind) *zygotes {
	shared.Lock()
	defer shared.Unlock()
	z := shared.list[kind]
	if z == nil {
		z = &zygotes{kind: kind, pool: zygote.NewPool(zygoteSpec(kind), zygote.Options(kind.options))}
		if shared.list == nil {
			shared.list = map[zygoteKind]*zygotes{}
		}
		shared.list[kind] = z
	}
	z.holders++
	z.pool.Warm()
	return z
}

func (z *zygotes) release() {
	shared.Lock()
	defer shared.Unlock()
	z.holders--
}

// heaps are the zygotes that a runtime uses: one kind for each size of heap.
type heaps struct {
	kind zygoteKind // of Run

	mu       sync.Mutex
	held     map[int64]*zygotes // by MiB
	released bool
}

func holdHeaps(kind zygoteKind) *heaps {
	h := &heaps{kind: kind, held: map[int64]*zygotes{}}
	h.of(kind.heapMiB)
	return h
}

// of returns those of a size, from its first use on; 0 is Run's.
func (h *heaps) of(mib int64) *zygotes {
	h.mu.Lock()
	defer h.mu.Unlock()
	if mib == 0 {
		mib = h.kind.heapMiB
	}
	if h.held[mib] == nil {
		kind := h.kind
		kind.heapMiB = mib
		h.held[mib] = holdZygotes(kind)
		if h.released { // for a run that finds its jail closed
			h.held[mib].release()
		}
	}
	return h.held[mib]
}

func (h *heaps) release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	for _, z := range h.held {
		z.release()
	}
}

// Warm waits until the zygote that the runtime's runs are forked from is ready. Create
// starts it, unless an earlier runtime of this process did; without Warm, the first run
// waits for it, 0.1 s on an idle machine. With [LauncherExec] there is nothing to wait for.
func (rt *NodeRuntime) Warm(ctx context.Context) error {
	if rt.forks == nil {
		return nil
	}
	if err := rt.forks.of(0).pool.Wait(ctx); err != nil {
		return fmt.Errorf("gaol: warm: %w", err)
	}
	return nil
}

// CloseIdle ends the zygotes that no open runtime uses. They stay otherwise, one for
// each kind that [LauncherZygote] tells of, until the host process ends: the next
// runtime then finds its Node warm.
func CloseIdle() error {
	shared.Lock()
	var idle []*zygotes
	for kind, z := range shared.list {
		if z.holders == 0 {
			idle = append(idle, z)
			delete(shared.list, kind)
		}
	}
	shared.Unlock()
	var failed error
	for _, z := range idle {
		failed = errors.Join(failed, z.pool.Close())
	}
	return failed
}

// zygoteEntry stands where Node expects its main module. There is no such file.
const zygoteEntry = "/main"

func zygoteSpec(kind zygoteKind) zygote.Spec {
	s := zygote.Spec{
		Image: kind.image,
		Args: slices.Concat([]string{
			kind.node,
			"--disable-sigusr1", // its thread would wait for the zygote's signals
		}, heapFlags(kind.heapMiB), []string{
			"--require=" + zygotePath,
			zygoteEntry,
		}),
		Env:    envList(baseEnv()),
		Dir:    jail.DefaultStateDir,
		Cgroup: kind.cgroupParent,
	}
	for _, f := range guestLayer() {
		s.Layer = append(s.Layer, zygote.File{Path: f.Path, Data: f.Data})
	}
	return s
}
