package native

import (
	"bytes"
	"context"
	goruntime "runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gaol/jail"
	"gaol/jail/kernfile"
	"gaol/runtime/internal/sandbox"
)

// parking holds at most one process of a sandbox that was started in advance. No other process of
// the sandbox runs meanwhile: it would have the same user id, and could stop the parked process.
type parking[P interface{ Kill() }] struct {
	// start starts a process in advance, if mayStart returns true when the sandbox has had no process
	// for a moment. The process is killed if it is not taken within most. If start is nil, only
	// what put adds waits. The fields are set before the first begin.
	start    func(ctx context.Context) (P, error)
	mayStart func() bool
	most     time.Duration

	mu       sync.Mutex
	closed   bool
	live     int           // processes from begin to end
	waiting  *P            // or nil
	starting chan struct{} // closed when start has returned; nil: it is not being called
	cancel   func()        // of starting
	pause    *time.Timer   // until start may be called, or nil
	expiry   *time.Timer   // of waiting, if start has started it
}

// advance counts the processes of all sandboxes that were started in advance by start, or are being started.
var advance atomic.Int64

// maxAdvance bounds them: each takes some 2 MB.
const maxAdvance = 64

// pauseTime is how long the sandbox must have no process before the next one is started in advance. Clients that
// make one run after another gain nothing from it, and right after a run its caller is busy.
const pauseTime = time.Millisecond

// put adds a process that was started in advance.
func (k *parking[P]) put(p P) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting = &p
}

// begin counts a starting process, and returns the parked process or nil. The caller must use it or
// kill it. An error means that ctx is done; the process is counted nevertheless.
func (k *parking[P]) begin(ctx context.Context) (*P, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.start != nil {
		k.live++
	}
	if k.pause != nil {
		k.pause.Stop()
		k.pause = nil
	}
	if starting := k.starting; starting != nil {
		k.mu.Unlock()
		select {
		case <-starting:
		case <-ctx.Done():
		}
		k.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return k.take(), nil
}

// take returns the process that waits, if any, which waits no more.
//
// Preconditions: k.mu is held.
func (k *parking[P]) take() *P {
	p := k.waiting
	k.waiting = nil
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
		advance.Add(-1)
	}
	return p
}

// end counts a process that has ended, and may start the next one in advance.
func (k *parking[P]) end() {
	if k.start == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live--
	if k.live == 0 && !k.closed {
		k.pause = time.AfterFunc(pauseTime, k.startNext)
	}
}

// startNext starts the next process in advance, if nothing speaks against it.
func (k *parking[P]) startNext() {
	k.mu.Lock()
	k.pause = nil
	if k.closed || k.live > 0 || k.waiting != nil || k.starting != nil || !k.mayStart() {
		k.mu.Unlock()
		return
	}
	if advance.Add(1) > maxAdvance {
		advance.Add(-1)
		k.mu.Unlock()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.most)
	defer cancel()
	started := make(chan struct{})
	k.starting, k.cancel = started, cancel
	k.mu.Unlock()
	defer close(started)
	p, err := k.start(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.starting = nil
	if err != nil { // the next process is started as usual, and reports the error
		advance.Add(-1)
		return
	}
	k.waiting = &p
	k.expiry = time.AfterFunc(k.most, func() { k.expire(&p) })
}

// expire kills a process that still waits.
func (k *parking[P]) expire(p *P) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting == p {
		k.take()
		(*p).Kill()
	}
}

// close cancels the start of a process, and starts no other. The owner kills the process that waits.
func (k *parking[P]) close() {
	k.mu.Lock()
	k.closed = true
	starting := k.starting
	if starting != nil {
		k.cancel()
	}
	if k.pause != nil {
		k.pause.Stop()
	}
	k.mu.Unlock()
	if starting != nil {
		<-starting
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.take()
}

// hasIdleProcessor reports whether a process that is started now delays no other: the machine has
// fewer runnable threads than processors, without this one.
func hasIdleProcessor() bool {
	text, err := kernfile.ReadFile("/proc/loadavg") // three averages, then runnable/all
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 4 {
		return false
	}
	runnable, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, err := strconv.Atoi(string(runnable))
	return err == nil && n <= goruntime.NumCPU()
}

// park starts a process in advance for a Command without a Plan, and with the default heap.
func (s *Sandbox) park(ctx context.Context) (*jail.Parked, error) {
	return s.Park(ctx, s.command(&sandbox.Command{}, s.rules))
}

// takeParked counts a starting process. It returns the parked process if it can run c.
func (s *Sandbox) takeParked(ctx context.Context, c *sandbox.Command) (*jail.Parked, error) {
	p, err := s.parking.begin(ctx)
	if p == nil {
		return nil, err
	}
	if c.Plan == nil && (c.HeapMiB == 0 || c.HeapMiB == s.spec.Warm.HeapMiB) {
		return *p, nil
	}
	(*p).Kill() // otherwise this process could stop it
	return nil, nil
}
