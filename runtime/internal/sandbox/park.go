package sandbox

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

	mu      sync.Mutex // also held while start is called
	closed  bool
	live    int         // processes from begin to end
	waiting *P          // or nil
	timer   *time.Timer // until start may be called, or waiting expires; or nil
	counted bool        // waiting counts in advance
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
// kill it. It waits for a start in advance, which takes some milliseconds.
func (k *parking[P]) begin() *P {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.start != nil {
		k.live++
	}
	return k.take()
}

// take returns the process that waits, if any, which waits no more.
//
// Preconditions: k.mu is held.
func (k *parking[P]) take() *P {
	p := k.waiting
	k.waiting = nil
	if k.timer != nil {
		k.timer.Stop()
	}
	if k.counted {
		k.counted = false
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
		k.timer = time.AfterFunc(pauseTime, k.startNext)
	}
}

// startNext starts the next process in advance, if nothing speaks against it.
func (k *parking[P]) startNext() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.live > 0 || k.waiting != nil || !k.mayStart() {
		return
	}
	k.counted = true
	if advance.Add(1) > maxAdvance {
		k.take()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), k.most)
	defer cancel()
	p, err := k.start(ctx)
	if err != nil { // the next process is started as usual, and reports the error
		k.take()
		return
	}
	k.waiting = &p
	k.timer = time.AfterFunc(k.most, func() { k.expire(&p) })
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

// close starts no other process. The owner kills the process that waits.
func (k *parking[P]) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
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
	var c Command
	s.restrict(&c, s.rules)
	return s.Park(ctx, c.Command)
}

// takeParked counts a starting process. It returns the parked process if it can run c.
func (s *Sandbox) takeParked(c *Command) *jail.Parked {
	p := s.parking.begin()
	if p == nil {
		return nil
	}
	if c.Plan == nil && (c.HeapMiB == 0 || c.HeapMiB == s.spec.Warm.HeapMiB) {
		return *p
	}
	(*p).Kill() // otherwise this process could stop it
	return nil
}
