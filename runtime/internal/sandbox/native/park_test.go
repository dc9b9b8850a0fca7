package native

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// waiter is a process that was started in advance.
type waiter struct {
	number int
	killed chan struct{} // closed by Kill
}

func (w waiter) Kill() { close(w.killed) }

func (w waiter) isKilled() bool {
	select {
	case <-w.killed:
		return true
	default:
		return false
	}
}

// starter starts waiters.
type starter struct {
	parking[waiter]
	started chan waiter // each that was started
	proceed chan error  // nil: start returns immediately
	idle    atomic.Bool
}

func newStarter(most time.Duration) *starter {
	s := &starter{started: make(chan waiter, 100)}
	s.idle.Store(true)
	n := 0
	s.most = most
	s.mayStart = func() bool { return s.idle.Load() }
	s.start = func(ctx context.Context) (waiter, error) {
		n++
		w := waiter{n, make(chan struct{})}
		s.started <- w
		if s.proceed == nil {
			return w, nil
		}
		select {
		case err := <-s.proceed:
			return w, err
		case <-ctx.Done():
			return w, ctx.Err()
		}
	}
	return s
}

// peek returns the process that waits, or nil.
func (s *starter) peek() *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// awaitWaiting waits until a process waits.
func (s *starter) awaitWaiting(t *testing.T) waiter {
	t.Helper()
	w := <-s.started
	for s.peek() == nil {
		time.Sleep(time.Millisecond)
	}
	return w
}

// checkNone fails the test if a process was started.
func (s *starter) checkNone(t *testing.T, when string) {
	t.Helper()
	time.Sleep(20 * pauseTime)
	select {
	case w := <-s.started:
		t.Errorf("process %d was started in advance %s", w.number, when)
	default:
	}
}

// The waiting process is given to the next one that begins, and to no other.
func TestParkingGivesOnce(t *testing.T) {
	s := newStarter(time.Hour)
	if w := s.begin(); w != nil {
		t.Errorf("process %d waited before the first run", w.number)
	}
	s.end()
	want := s.awaitWaiting(t)
	if w := s.begin(); w == nil || w.number != want.number {
		t.Errorf("got %v, want process %d", w, want.number)
	}
	if w := s.begin(); w != nil {
		t.Errorf("process %d was given to a second run", w.number)
	}
	s.end()
	s.checkNone(t, "while another one runs")
	s.end()
	s.awaitWaiting(t)
	s.setClosed(true)
	if want.isKilled() {
		t.Error("a process that was used is killed")
	}
}

// No process is started while one runs, while the machine is busy, or after close.
func TestParkingStartsNone(t *testing.T) {
	s := newStarter(time.Hour)
	s.idle.Store(false)
	s.begin()
	s.end()
	s.checkNone(t, "on a busy machine")
	s.idle.Store(true)
	for range 50 { // one run after another
		s.begin()
		s.end()
	}
	s.begin()
	for len(s.started) > 0 { // on a slow machine
		<-s.started
	}
	s.checkNone(t, "while one runs")
	s.setClosed(true)
	s.end()
	s.checkNone(t, "after close")
}

// A process that is not used is killed.
func TestParkingExpires(t *testing.T) {
	s := newStarter(10 * time.Millisecond)
	s.begin()
	s.end()
	w := <-s.started
	<-w.killed
	if s.peek() != nil {
		t.Error("it still waits")
	}
	s.setClosed(true)
}

// A run that begins while its process is being started waits for it.
func TestParkingBeginsMeanwhile(t *testing.T) {
	s := newStarter(time.Hour)
	s.proceed = make(chan error)
	s.begin()
	s.end()
	want := <-s.started
	go func() { s.proceed <- nil }()
	if w := s.begin(); w == nil || w.number != want.number {
		t.Errorf("got %v, want process %d", w, want.number)
	}
	s.end()
	<-s.started
	go func() { s.proceed <- errors.New("no process") }()
	if w := s.begin(); w != nil {
		t.Errorf("got process %d, which was not started", w.number)
	}
	s.end()
	<-s.started
	go func() { s.proceed <- nil }()
	s.setClosed(true)
	if n := advance.Load(); n != 0 {
		t.Errorf("%d processes are counted after close", n)
	}
}

// The number of waiting processes is bounded.
func TestParkingIsBounded(t *testing.T) {
	advance.Store(maxAdvance)
	defer advance.Store(0)
	s := newStarter(time.Hour)
	s.begin()
	s.end()
	s.checkNone(t, "above the bound")
	advance.Store(maxAdvance - 1)
	s.begin()
	s.end()
	s.awaitWaiting(t)
	s.setClosed(true)
	if n := advance.Load(); n != maxAdvance-1 {
		t.Errorf("%d processes are counted, want %d", n, maxAdvance-1)
	}
}

// Without start, only what put has added waits.
func TestParkingPut(t *testing.T) {
	var k parking[waiter]
	k.put(waiter{number: 7})
	if w := k.begin(); w == nil || w.number != 7 {
		t.Errorf("%v", w)
	}
	k.end()
	if w := k.begin(); w != nil {
		t.Errorf("%v, want none", w)
	}
	k.setClosed(true)
}
