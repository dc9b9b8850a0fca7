package service

import (
	"sync"

	"gaol/runtime/resultjson"
)

const (
	// ringSize bounds the events of a process that are kept for its readers, in bytes.
	ringSize = 1 << 20

	// history is how much a lossless ring keeps of the events that a reader has got, because a connection
	// may end before they have arrived.
	history = ringSize / 2

	// eventSize is the cost of an event without its output.
	eventSize = 128

	// batch is how many events a reader takes with one call.
	batch = 64
)

// ring keeps the last events of a process, in their order, numbered from 1. There may be any number
// of readers.
type ring struct {
	// lossless makes add block while the ring lacks room for events that no reader has got yet,
	// until release is called. Without readers the process blocks.
	lossless bool

	mu        sync.Mutex
	room      sync.Cond // signals add: a reader has got events, or release was called
	events    []Event
	size      int
	last      uint64 // the number of the newest event
	delivered uint64 // if lossless: the highest number of an event that a reader has got
	pending   int    // if lossless: the size of the events after that
	released  bool
	ended     bool          // the last event is in the ring
	changed   chan struct{} // closed by the next event; nil: no reader waits
}

func newRing(lossless bool) *ring {
	r := &ring{lossless: lossless}
	r.room.L = &r.mu
	return r
}

// add appends an event and drops the oldest ones if the ring is full.
func (r *ring) add(e Event, last bool) {
	cost := eventCost(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.lossless && !r.released && r.pending > 0 && r.pending+cost > ringSize-history {
		r.room.Wait()
	}
	for len(r.events) > 0 && r.size+cost > ringSize && (!r.lossless || r.events[0].ID <= r.delivered) {
		r.size -= eventCost(r.events[0])
		r.events[0] = Event{}
		r.events = r.events[1:]
	}
	r.last++
	e.ID = r.last
	r.events = append(r.events, e)
	r.size += cost
	r.pending += cost
	r.ended = last
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// release unblocks add: the process has ended, and its remaining output is bounded.
func (r *ring) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
	r.room.Broadcast()
}

// confirm records that a reader has got the events up to a number.
func (r *ring) confirm(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lossless {
		return
	}
	for r.delivered < min(id, r.last) {
		r.pending -= eventCost(r.events[r.delivered+1-r.events[0].ID]) // it has not been dropped
		r.delivered++
	}
	r.room.Broadcast()
}

// read returns the next events after a number, some of them if there are many. The first is an
// EventGap if events are gone. Without events it returns a channel that is closed when there are
// some, or nil if there will be none.
func (r *ring) read(after uint64) (events []Event, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after >= r.last {
		if r.ended {
			return nil, nil
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		return nil, r.changed
	}
	oldest := r.events[0].ID
	if after+1 < oldest {
		events = append(events, Event{oldest - 1, EventGap, resultjson.Gap{First: after + 1, Last: oldest - 1}})
		after = oldest - 1
	}
	rest := r.events[after+1-oldest:]
	return append(events, rest[:min(batch, len(rest))]...), nil
}

// lastID returns the number of the newest event, and the size of the events.
func (r *ring) lastID() (id uint64, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.size
}

// eventCost returns the size that an event counts as.
func eventCost(e Event) int {
	if o, ok := e.Data.(resultjson.Output); ok {
		return eventSize + len(o.Text) + len(o.Bytes)
	}
	return 4 * eventSize
}
