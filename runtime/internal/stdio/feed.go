package stdio

import "sync"

// Feed passes the events of a run to one consumer, in the order in which the host learns of
// them. It is closed with a last event.
//
//	output, calls, logs ── WaitForRoom: 64 KiB ──┐
//	other events ───────── never wait ───────────┼─ queue ──> All
//	last event ──────────────────────────────────┘
//
// Nothing blocks while it holds a lock. A consumer that takes no
// events makes the run's pipes fill up, and the run wait. The end of the run never waits: the
// rest of the pipes, which the kernel bounds, is read into the queue, so that nothing is lost
// and nothing of the run remains.
type Feed[E any] struct {
	mu      sync.Mutex
	arrived sync.Cond // signals the consumer: a new event, or closed
	freed   sync.Cond // signals producers: there is room

	queue  []item[E]
	lent   []byte   // memory of the event that the consumer holds; or nil
	spare  [][]byte // memory of earlier events
	weight int      // of the queued events
	ended  bool     // the run has ended: producers no longer wait
	closed bool     // the last event is in the queue

	consumer sync.Mutex // held while a consumer is in All; only tried, so that nothing waits for it
}

// item is an event in the queue.
type item[E any] struct {
	event  E
	weight int
	memory []byte // of an EventSink; or nil
}

const maxWeight = 64 << 10

// EventWeight is the least weight of an event that a guest can cause at will.
const EventWeight = 1 << 10

// NewFeed returns an empty feed.
func NewFeed[E any]() *Feed[E] {
	f := &Feed[E]{}
	f.arrived.L, f.freed.L = &f.mu, &f.mu
	return f
}

// Put appends an event. It does not wait. weight counts towards what WaitForRoom waits for.
func (f *Feed[E]) Put(event E, weight int) { f.put(item[E]{event: event, weight: weight}) }

func (f *Feed[E]) put(i item[E]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.append(i)
}

func (f *Feed[E]) append(i item[E]) {
	if f.closed {
		return
	}
	f.weight += i.weight
	f.queue = append(f.queue, i)
	f.arrived.Signal()
}

// WaitForRoom blocks while the queued events weigh 64 KiB or more, unless the run has
// ended. Call it before reading from the guest what Put then appends. It may be called on
// nil.
func (f *Feed[E]) WaitForRoom() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.weight >= maxWeight && !f.ended {
		f.freed.Wait()
	}
}

// End marks the end of the run: it wakes all goroutines that wait for the consumer, and none
// waits from then on. It may be called on nil.
func (f *Feed[E]) End() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.freed.Broadcast()
}

// Close ends the feed with a last event.
func (f *Feed[E]) Close(last E) {
	f.End()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.append(item[E]{event: last})
	f.closed = true
}

// next waits for the next event. It returns false after the last one.
func (f *Feed[E]) next() (event E, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lent != nil { // the data of the last event is valid until now
		f.spare = append(f.spare, f.lent)
		f.lent = nil
	}
	for len(f.queue) == 0 && !f.closed {
		f.arrived.Wait()
	}
	if len(f.queue) == 0 {
		return event, false
	}
	i := f.queue[0]
	f.queue[0] = item[E]{}
	f.queue = f.queue[1:]
	f.lent = i.memory
	if f.weight -= i.weight; i.weight > 0 {
		f.freed.Broadcast()
	}
	return i.event, true
}

// All yields the events and reports whether it reached the last one. A second All while one
// is running yields nothing.
func (f *Feed[E]) All(yield func(E) bool) (complete bool) {
	if !f.consumer.TryLock() {
		return true
	}
	defer f.consumer.Unlock()
	for {
		event, ok := f.next()
		if !ok {
			return true
		}
		if !yield(event) {
			return false
		}
	}
}

// EventSink is a sink that passes a stream on as events of a feed.
type EventSink[E any] struct {
	Feed    *Feed[E]
	Event   func([]byte) E
	Limit   int64  // bytes after which OnLimit is called
	OnLimit func() // may be nil

	count  int64  // bytes so far
	memory []byte // that the next event gets
}

// Buffer waits until the feed has room.
func (s *EventSink[E]) Buffer(n int) []byte {
	s.Feed.WaitForRoom()
	if len(s.memory) < n {
		s.memory = s.Feed.takeSpare(n)
	}
	return s.memory
}

// takeSpare returns memory of an earlier event if it has n bytes, or else new memory.
func (f *Feed[E]) takeSpare(n int) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := len(f.spare) - 1; last >= 0 {
		b := f.spare[last]
		f.spare = f.spare[:last]
		if len(b) >= n {
			return b
		}
	}
	return make([]byte, n)
}

// Write puts b into the feed.
func (s *EventSink[E]) Write(b []byte) {
	s.Feed.put(item[E]{s.Event(b), len(s.memory), s.memory})
	s.memory = nil
	if s.count += int64(len(b)); s.count > s.Limit && s.OnLimit != nil {
		s.OnLimit()
	}
}
