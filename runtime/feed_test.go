package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gaol/internal/snippet"
	"gaol/internal/wire"
)

// eventTexts are a feed's events as text.
func eventTexts(f *feed) []string {
	var list []string
	f.all(func(e Event) bool {
		list = append(list, text(e))
		return true
	})
	return list
}

func text(e Event) string {
	switch e := e.(type) {
	case StdoutEvent:
		return "out " + string(e.Data)
	case StderrEvent:
		return "err " + string(e.Data)
	case LogEvent:
		return string(e.Log.Level) + " " + e.Log.Text
	case CallEvent:
		return "call " + e.Call.Name
	case DenialEvent:
		return "denial " + e.Denial.Target
	case ExitEvent:
		return fmt.Sprint("exit ", e.Err)
	}
	return "?"
}

// pieces is a stream that is read in the pieces that it was given.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	*p = (*p)[1:]
	return n, nil
}

func TestFeedOrder(t *testing.T) {
	f := newFeed()
	f.put(arrival{event: StdoutEvent{[]byte("1")}})
	f.denial(Denial{Target: "2"})
	f.call(Call{Name: "3"})
	f.log(Log{Level: LogWarn, Text: "4"})
	f.put(arrival{event: StderrEvent{[]byte("5")}})
	f.close(ExitEvent{Err: errors.New("6")})
	f.close(ExitEvent{})
	f.denial(Denial{Target: "too late"})
	want := []string{"out 1", "denial 2", "call 3", "warn 4", "err 5", "exit 6"}
	if got := eventTexts(f); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := eventTexts(f); len(got) != 0 {
		t.Errorf("again: %q", got)
	}
}

// The pieces come whole and in order through two buffers, whoever is the faster.
func TestFlow(t *testing.T) {
	for name, pause := range map[string]time.Duration{"at once": 0, "slowly": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var in pieces
			var want []string
			for i := range 50 {
				in = append(in, fmt.Sprint(i, strings.Repeat("x", i)))
				want = append(want, "out "+in[i])
			}
			f := newFeed()
			var all sync.WaitGroup
			all.Go(newFlow(f, &in, stdoutEvent).pump)
			go func() {
				all.Wait()
				f.close(ExitEvent{})
			}()
			var got []string
			f.all(func(e Event) bool {
				before := text(e)
				time.Sleep(pause)
				if after := text(e); after != before {
					t.Errorf("%q has become %q while it was looked at", before, after)
				}
				got = append(got, before)
				return true
			})
			if want = append(want, "exit <nil>"); !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Nothing is taken in for who takes nothing, but for a buffer or two; the run's end has
// all that is left come.
func TestFlowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := pieces{"a", "b", "c", "d", "e"}
		f := newFeed()
		var all sync.WaitGroup
		all.Go(newFlow(f, &in, stderrEvent).pump)
		synctest.Wait()
		if len(in) != 3 {
			t.Errorf("%d pieces are left, want 3", len(in))
		}
		if e, _ := f.next(); text(e) != "err a" {
			t.Errorf("%s is first", text(e))
		}
		if synctest.Wait(); len(in) != 3 {
			t.Errorf("%d pieces are left with a in use", len(in))
		}
		if e, _ := f.next(); text(e) != "err b" {
			t.Errorf("%s is second", text(e))
		}
		if synctest.Wait(); len(in) != 2 {
			t.Errorf("%d pieces are left with b in use", len(in))
		}
		f.over()
		all.Wait()
		f.close(ExitEvent{})
		if got := eventTexts(f); !slices.Equal(got, []string{"err c", "err d", "err e", "exit <nil>"}) {
			t.Errorf("then %q", got)
		}
	})
}

// The reader of the control channel waits for room, and whoever ends a call does not.
func TestFeedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		logged := 0
		go func() {
			for range 1000 {
				f.room()
				f.log(Log{Text: strings.Repeat("x", 3<<10)})
				logged++
			}
		}()
		synctest.Wait()
		if logged != 16 { // of 4 KiB each
			t.Errorf("%d logs were taken in", logged)
		}
		for range 4 {
			f.call(Call{})
		}
		for range 8 {
			f.next()
		}
		if synctest.Wait(); logged != 23 { // the calls have their place
			t.Errorf("%d logs, when 8 have gone", logged)
		}
		f.over()
		if synctest.Wait(); logged != 1000 {
			t.Errorf("%d logs after the end", logged)
		}
	})
}

// Who breaks out can go on; who comes while another ranges gets nothing.
func TestFeedRanges(t *testing.T) {
	f := newFeed()
	for i := range 3 {
		f.log(Log{Text: fmt.Sprint(i)})
	}
	f.close(ExitEvent{})
	if f.all(func(Event) bool { return false }) {
		t.Error("it was complete with the first event")
	}
	if !f.all(func(Event) bool {
		if got := eventTexts(f); len(got) != 0 {
			t.Errorf("a second one got %q", got)
		}
		return true
	}) {
		t.Error("it was not complete")
	}
}

// A snippet's lines are told as they are kept, and the reader of them waits.
func TestNotesFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotes(&snippet.Program{}, "", EvaluateOptions{MaxLogs: 100, MaxLogLength: 3 << 10})
		n.feed = newFeed()
		n.log(wire.LevelError, "one")
		n.stdout.take([]byte("two\nthr"))
		go func() {
			for range 200 {
				n.stderr.take([]byte(strings.Repeat("x", 3<<10) + "\n"))
			}
		}()
		synctest.Wait()
		if len(n.logs) != 18 {
			t.Errorf("%d lines were taken in", len(n.logs))
		}
		n.feed.over()
		synctest.Wait()
		n.conclude(&Result{})
		n.feed.close(ExitEvent{})
		var got []Log
		n.feed.all(func(e Event) bool {
			if l, ok := e.(LogEvent); ok {
				got = append(got, l.Log)
			}
			return true
		})
		if !slices.Equal(got, n.logs) || len(got) != 100 || got[1].Text != "two" || got[1].Level != LogStdout {
			t.Errorf("%d lines were told, %d kept", len(got), len(n.logs))
		}
	})
}

// Every call is told of once, whether it was over before anybody followed, is over later, or
// never.
func TestCallsFollowed(t *testing.T) {
	newOnes := func() *calls {
		c := newCalls(t.Context(), []hostFunction{{}}, defaultCalls, newOutbox(discarding{}))
		t.Cleanup(c.end)
		return c
	}
	begin := func(c *calls, id uint32) *pendingCall {
		p := &pendingCall{Call: wire.Call{ID: id}, place: -1}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.admit(p)
		return p
	}
	count := func(f *feed) (over, cut int) {
		f.close(ExitEvent{})
		f.all(func(e Event) bool {
			if call, ok := e.(CallEvent); ok && call.Call.Error == "" {
				over++
			} else if ok {
				cut++
			}
			return true
		})
		return over, cut
	}
	for name, when := range map[string]int{"from the start": 0, "later": 1, "at the end": 2, "after it": 3} {
		c, f := newOnes(), newFeed()
		var begun []*pendingCall
		for step := range 4 {
			if when == step {
				c.follow(f)
			}
			switch step {
			case 0:
				for id := range uint32(3) {
					begun = append(begun, begin(c, id))
				}
				c.conclude(begun[1], []byte("1"), nil)
			case 1:
				c.conclude(begun[0], []byte("1"), nil)
			case 2:
				c.end()
				c.end()
				c.conclude(begun[2], []byte("1"), nil) // too late
				if list, _ := c.listed(); len(list) != 3 || list[2].Error == "" {
					t.Errorf("%s: listed are %+v", name, list)
				}
			}
		}
		if over, cut := count(f); over != 2 || cut != 1 {
			t.Errorf("%s: told of %d calls and %d that were cut off", name, over, cut)
		}
	}
}

// discarding is a pipe that nobody minds.
type discarding struct{}

func (discarding) Write(b []byte) (int, error) { return len(b), nil }
func (discarding) Close() error                { return nil }

func TestDenialsFollowed(t *testing.T) {
	d, f := &denials{}, newFeed()
	for _, target := range []string{"/a", "/a", "/b"} {
		d.add(Denial{Scope: "fs", Operation: "read", Target: target})
	}
	d.follow(f)
	for _, target := range []string{"/b", "/c", "/c"} {
		d.add(Denial{Scope: "fs", Operation: "read", Target: target})
	}
	f.close(ExitEvent{})
	if got := eventTexts(f); !slices.Equal(got, []string{"denial /a", "denial /b", "denial /c", "exit <nil>"}) {
		t.Errorf("told of %q", got)
	}
}

func TestAppendTail(t *testing.T) {
	var all, tail []byte
	for i, n := range []int{0, 1, maxTail - 2, 1, 1, 5, maxTail, 3 * maxTail, 7, maxTail - 7, maxTail + 1} {
		piece := bytes.Repeat([]byte{byte('a' + i)}, n)
		all = append(all, piece...)
		tail = appendTail(tail, piece)
		if want := all[max(0, len(all)-maxTail):]; !bytes.Equal(tail, want) {
			t.Fatalf("after %d pieces: %d bytes, want %d", i+1, len(tail), len(want))
		}
	}
}
