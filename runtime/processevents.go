package runtime

import (
	"iter"
	"sync"
)

// processEvents are what there is of a process's events.
type processEvents struct {
	mu    sync.Mutex
	ended bool  // the process has
	feed  *feed // nil before anybody has asked for it
	flows sync.WaitGroup
}

// Events are what the process does, to be ranged over up to its ExitEvent, as
// [Stream.Events] are. They take over Stdout and Stderr, which nobody may read any more.
//
// They begin with what nobody has read yet, and with the denials and calls that there were,
// as far as Result would list them. To break out of the range leaves the process
// be: it goes on as far as it can without a reader, and ranging again goes on with the next
// event.
func (p *Process) Events() iter.Seq[Event] {
	e := &p.events
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.feed == nil {
		e.feed = newFeed()
		p.live.follow(e.feed)
		e.flows.Go(newFlow(e.feed, p.Stdout, stdoutEvent).pump)
		e.flows.Go(newFlow(e.feed, p.Stderr, stderrEvent).pump)
		if e.ended {
			e.end(p)
		}
	}
	return func(yield func(Event) bool) { e.feed.all(yield) }
}

// endEvents puts what is left, and the end. It waits for nobody.
//
// Preconditions: p.done is closed.
func (p *Process) endEvents() {
	e := &p.events
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	if e.feed != nil {
		e.end(p)
	}
}

func (e *processEvents) end(p *Process) {
	e.feed.over()
	e.flows.Wait()
	res, err := p.outcome()
	e.feed.close(ExitEvent{Result: res, Err: err})
}
