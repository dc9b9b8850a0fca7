package service

import (
	"strings"
	"testing"
	"testing/synctest"

	"gaol/runtime/resultjson"
)

// output returns an event that counts a number of bytes.
func output(size int) Event {
	return Event{Name: EventStdout, Data: resultjson.Output{Text: strings.Repeat("x", size-eventSize)}}
}

// ids reads all events after a number that there are now, and returns the numbers of the gap and of
// the first and last event.
func ids(t *testing.T, r *ring, after uint64) (gap resultjson.Gap, first, last uint64) {
	t.Helper()
	for {
		events, _ := r.read(after)
		if len(events) == 0 {
			return gap, first, last
		}
		if len(events) > batch+1 {
			t.Fatalf("%d events at once", len(events))
		}
		for _, e := range events {
			switch g, ok := e.Data.(resultjson.Gap); {
			case ok:
				gap = g
			case after != e.ID-1:
				t.Fatalf("event %d comes after %d", e.ID, after)
			case first == 0:
				first = e.ID
			}
			after, last = e.ID, e.ID
		}
	}
}

// Without readers the ring keeps the newest events, within its size.
func TestRingDrops(t *testing.T) {
	r := newRing(false)
	const size = 10 << 10
	for range 300 {
		r.add(output(size), false)
		if _, bytes := r.lastID(); bytes > ringSize {
			t.Fatalf("%d bytes", bytes)
		}
	}
	const kept = ringSize / size
	if gap, first, last := ids(t, r, 0); gap != (resultjson.Gap{First: 1, Last: 300 - kept}) || first != 301-kept || last != 300 {
		t.Errorf("%+v, %d to %d", gap, first, last)
	}
	if gap, first, last := ids(t, r, 290); gap != (resultjson.Gap{}) || first != 291 || last != 300 {
		t.Errorf("after 290: %+v, %d to %d", gap, first, last)
	}
	r.add(output(2*ringSize), true)
	if gap, first, last := ids(t, r, 299); gap != (resultjson.Gap{First: 300, Last: 300}) || first != 301 || last != 301 {
		t.Errorf("a large event: %+v, %d to %d", gap, first, last)
	}
	if events, changed := r.read(301); events != nil || changed != nil {
		t.Errorf("after the end: %v", events)
	}
}

// Small events count more than their text.
func TestRingSmallEvents(t *testing.T) {
	r := newRing(false)
	for range 100000 {
		r.add(Event{Name: EventStdout, Data: resultjson.Output{Text: "x"}}, false)
	}
	if n := len(r.events); n > ringSize/eventSize {
		t.Errorf("%d events", n)
	}
}

// A waiting reader is woken.
func TestRingWakes(t *testing.T) {
	r := newRing(false)
	_, changed := r.read(0)
	_, same := r.read(0)
	if changed != same {
		t.Error("two channels")
	}
	r.add(output(1000), false)
	<-changed
}

// A lossless ring waits for readers, keeps some of what they have got, and does not wait after the
// end.
func TestRingLossless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(true)
		const size = 16 << 10
		const room = (ringSize - history) / size
		added := make(chan uint64, 1)
		go func() {
			for range 500 {
				r.add(output(size), false)
			}
			id, _ := r.lastID()
			added <- id
		}()
		for got := uint64(0); got < 200; got += 10 {
			synctest.Wait()
			r.confirm(got)
			synctest.Wait()
			if id, _ := r.lastID(); id != got+room {
				t.Fatalf("%d got, %d added", got, id)
			}
			back := max(got, history/size) - history/size
			if gap, first, last := ids(t, r, back); gap != (resultjson.Gap{}) || first != back+1 || last != got+room {
				t.Fatalf("%d got: %+v, %d to %d", got, gap, first, last)
			}
		}
		r.confirm(1) // of a slower reader
		r.confirm(10000)
		synctest.Wait()
		if id, _ := r.lastID(); id != 190+2*room {
			t.Errorf("%d added", id)
		}
		r.release()
		if id := <-added; id != 500 {
			t.Errorf("%d added after the end", id)
		}
		if gap, _, last := ids(t, r, 190+2*room); gap != (resultjson.Gap{}) || last != 500 {
			t.Errorf("%+v, to %d", gap, last)
		}
	})
}
