package runtime

import "sync"

// feed hands on what a run does to the one who follows it, in the order in which the host
// learns of it.
//
//	standard output ── as far as there are buffers: 2 ─┐
//	standard error ─── likewise ───────────────────────┤
//	logs, calls ────── as far as there is room: 64 KiB ┼─ queue ──> who ranges
//	denials ────────── at once: 64 at most ────────────┤
//	the end ───────────────────────────────────────────┘
//
// So nobody waits while it holds a lock, and the queue is short: who takes no event has
// the run's pipes fill up, and then the run wait. It is the run's end that may not wait
// for anybody. What the kernel still holds then, which is bounded too, is taken into
// the queue (see over), so that nothing is lost and nothing of the run is left.
type feed struct {
	mu      sync.Mutex
	arrived sync.Cond // an event, or the end: for who ranges
	freed   sync.Cond // a buffer, or room: for who puts

	queue  []arrival
	held   *flow // whose buffer the last event has that was taken; nil: nobody's
	told   int   // what the logs and calls in the queue weigh
	ranged bool  // somebody ranges
	ended  bool  // the run has: nobody waits any more
	closed bool  // the last event is in the queue
}

// arrival is an event in the queue.
type arrival struct {
	event  Event
	flow   *flow // whose buffer it has, or nil
	weight int   // of a log or a call
}

const (
	// mostTold is what logs and calls may weigh before more is read of the guest.
	mostTold = 64 << 10

	// toldWeight is the least that one weighs.
	toldWeight = 1 << 10
)

func newFeed() *feed {
	f := &feed{}
	f.arrived.L, f.freed.L = &f.mu, &f.mu
	return f
}

// put appends to the queue. It does not wait.
func (f *feed) put(a arrival) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.append(a)
}

func (f *feed) append(a arrival) {
	if f.closed {
		return
	}
	f.told += a.weight
	f.queue = append(f.queue, a)
	f.arrived.Signal()
}

func (f *feed) call(c Call) { f.put(arrival{event: CallEvent{c}, weight: toldWeight}) }

func (f *feed) denial(d Denial) { f.put(arrival{event: DenialEvent{d}}) }

func (f *feed) log(l Log) { f.put(arrival{event: LogEvent{l}, weight: toldWeight + len(l.Text)}) }

// room waits until there is some for a log or a call. That is for who reads what a guest
// sends.
func (f *feed) room() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.told >= mostTold && !f.ended {
		f.freed.Wait()
	}
}

// lend waits until one of a flow's buffers is free, and takes it. ok is false if the run
// has ended: who ranges may have all of them for as long as he likes.
func (f *feed) lend(w *flow) (ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w.free == 0 && !f.ended {
		f.freed.Wait()
	}
	w.free--
	return !f.ended
}

// over has nobody wait any more: the run has ended, and what is still put is no more
// than what the kernel held for it.
func (f *feed) over() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.freed.Broadcast()
}

// close puts the last event.
func (f *feed) close(e ExitEvent) {
	f.over()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.append(arrival{event: e})
	f.closed = true
}

// next takes the next event, when there is one. ok is false after the last.
func (f *feed) next() (e Event, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held != nil {
		f.held.free++
		f.freed.Broadcast()
	}
	for len(f.queue) == 0 && !f.closed {
		f.arrived.Wait()
	}
	if len(f.queue) == 0 {
		return nil, false
	}
	a := f.queue[0]
	f.queue[0] = arrival{}
	f.queue = f.queue[1:]
	f.held = a.flow
	if f.told -= a.weight; a.weight > 0 {
		f.freed.Broadcast()
	}
	return a.event, true
}

// all yields the events, and reports whether it came to the last: it did not if it was not
// let. One who comes while another ranges gets none.
func (f *feed) all(yield func(Event) bool) (complete bool) {
	if !f.begin() {
		return true
	}
	defer f.leave()
	for {
		e, ok := f.next()
		if !ok {
			return true
		}
		if !yield(e) {
			return false
		}
	}
}

func (f *feed) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.ranged
	f.ranged = true
	return !was
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ranged = false
}
