package stdio

import "sync"

// Feed passes the events of a run to one consumer, in the order in which the host learns of
// them, until it is closed.
//
//	standard output ── limited by buffers: 2 ──┐
//	standard error ─── likewise ───────────────┤
//	weighted events ── WaitForRoom: 64 KiB ────┼─ queue ──> All
//	other events ───── never wait ─────────────┤
//	last event ────────────────────────────────┘
//
// Nothing blocks while it holds a lock. A consumer that takes no
// events makes the run's pipes fill up, and the run wait. The end of the run never waits: the
// rest of the pipes, which the kernel bounds, is read into the queue, so that nothing is lost
// and nothing of the run remains.
type Feed[E any] struct {
	mu      sync.Mutex
	arrived sync.Cond // signals the consumer: a new event, or closed
	freed   sync.Cond // signals producers: a buffer or room is free

	queue  []item[E]
	lent   *int // counts the used buffers of the sink whose event the consumer holds; or nil
	weight int  // of the queued events
	ended  bool // the run has ended: producers no longer wait
	closed bool // there are no more events than those in the queue

	consumer sync.Mutex // held while a consumer is in All; only tried, so that nothing waits for it
}

// item is an event in the queue.
type item[E any] struct {
	event   E
	buffers *int // the used buffers of its sink, or nil
	weight  int
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

// acquire waits for a free buffer of a sink and marks it used. It returns false if the run
// has ended: the consumer may keep its buffers for any time.
func (f *Feed[E]) acquire(used *int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for *used == eventBuffers && !f.ended {
		f.freed.Wait()
	}
	*used++
	return !f.ended
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

// Close ends the feed, with last events if there are any.
func (f *Feed[E]) Close(last ...E) {
	f.End()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range last {
		f.append(item[E]{event: e})
	}
	f.closed = true
	f.arrived.Signal()
}

// next waits for the next event. It returns false after the last one.
func (f *Feed[E]) next() (event E, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lent != nil { // the data of the last event is valid until now
		*f.lent--
		f.freed.Broadcast()
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
	f.lent = i.buffers
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

// EventSink is a sink that passes a stream on as events of a feed. It has two buffers: the
// consumer uses one while the other is filled.
type EventSink[E any] struct {
	Feed    *Feed[E]
	Event   func([]byte) E
	Limit   int64  // bytes after which OnLimit is called
	OnLimit func() // may be nil

	count   int64 // bytes so far
	buffers [eventBuffers]buffer
	turn    int // index of the last buffer returned
	used    int // buffers that are in the feed or with its consumer; guarded by the feed's lock
}

const eventBuffers = 2

// Buffer waits until the consumer has returned a buffer, unless the run has ended.
func (f *EventSink[E]) Buffer(n int) []byte {
	if !f.Feed.acquire(&f.used) {
		return make([]byte, n)
	}
	f.turn = (f.turn + 1) % eventBuffers // they return in the order in which they were sent
	return f.buffers[f.turn].Buffer(n)
}

// Write puts b into the feed.
func (f *EventSink[E]) Write(b []byte) {
	f.Feed.put(item[E]{event: f.Event(b), buffers: &f.used})
	if f.count += int64(len(b)); f.count > f.Limit && f.OnLimit != nil {
		f.OnLimit()
	}
}
