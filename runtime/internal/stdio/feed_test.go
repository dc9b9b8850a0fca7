package stdio

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// all returns the events of a feed.
func all(f *Feed[string]) []string {
	var list []string
	f.All(func(e string) bool {
		list = append(list, e)
		return true
	})
	return list
}

// pieces is a stream whose reads return one piece each.
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
	f := NewFeed[string]()
	f.Put("1", 0)
	f.Put("2", EventWeight)
	f.Close("3")
	f.Close("4")
	f.Put("too late", 0)
	if got := all(f); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("got %q", got)
	}
	if got := all(f); len(got) != 0 {
		t.Errorf("again: %q", got)
	}
}

// Pieces pass through two buffers whole and in order, whichever side is faster.
func TestEventSink(t *testing.T) {
	for name, pause := range map[string]time.Duration{"fast": 0, "slow": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			var in, want pieces
			for i := range 50 {
				in = append(in, fmt.Sprint(i, strings.Repeat("x", i)))
				want = append(want, in[i])
			}
			f := NewFeed[[]byte]()
			var pumps sync.WaitGroup
			pumps.Go(func() { Pump(&in, &EventSink[[]byte]{Feed: f, Event: bytesEvent}) })
			go func() {
				pumps.Wait()
				f.Close(nil)
			}()
			var got pieces
			f.All(func(b []byte) bool {
				before := string(b)
				time.Sleep(pause)
				if string(b) != before {
					t.Errorf("%q became %q while it was used", before, b)
				}
				got = append(got, before)
				return true
			})
			if want = append(want, ""); !slices.Equal(got, want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func bytesEvent(b []byte) []byte { return b }

// Without a consumer only two buffers are filled. After the run's end the rest is read.
func TestEventSinkBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := pieces{"a", "b", "c", "d", "e"}
		f := NewFeed[[]byte]()
		var pumps sync.WaitGroup
		pumps.Go(func() { Pump(&in, &EventSink[[]byte]{Feed: f, Event: bytesEvent}) })
		synctest.Wait()
		if len(in) != 3 {
			t.Errorf("%d pieces remain, want 3", len(in))
		}
		if e, _ := f.next(); string(e) != "a" {
			t.Errorf("%s is first", e)
		}
		if synctest.Wait(); len(in) != 3 {
			t.Errorf("%d pieces remain while a is in use", len(in))
		}
		if e, _ := f.next(); string(e) != "b" {
			t.Errorf("%s is second", e)
		}
		if synctest.Wait(); len(in) != 2 {
			t.Errorf("%d pieces remain while b is in use", len(in))
		}
		f.End()
		pumps.Wait()
		f.Close(nil)
		var got []string
		f.All(func(b []byte) bool { got = append(got, string(b)); return true })
		if !slices.Equal(got, []string{"c", "d", "e", ""}) {
			t.Errorf("then %q", got)
		}
	})
}

// A followed output beyond its limit is reported, and still passed on.
func TestEventSinkLimit(t *testing.T) {
	f := NewFeed[[]byte]()
	calls := 0
	s := &EventSink[[]byte]{Feed: f, Event: bytesEvent, Limit: 3, OnLimit: func() { calls++ }}
	for _, piece := range []string{"ab", "c", "d"} {
		s.Write(append(s.Buffer(1)[:0], piece...))
		f.next()
	}
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// Producers wait for room; Put does not.
func TestFeedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFeed[string]()
		logged := 0
		go func() {
			for range 1000 {
				f.WaitForRoom()
				f.Put("", EventWeight+3<<10)
				logged++
			}
		}()
		synctest.Wait()
		if logged != 16 { // of 4 KiB each
			t.Errorf("%d events were put", logged)
		}
		for range 4 {
			f.Put("", EventWeight)
		}
		for range 8 {
			f.next()
		}
		if synctest.Wait(); logged != 23 { // the other four use room, too
			t.Errorf("%d events after 8 were taken", logged)
		}
		f.End()
		if synctest.Wait(); logged != 1000 {
			t.Errorf("%d events after the end", logged)
		}
	})
}

// A consumer that stops can continue. A second one at the same time gets nothing.
func TestFeedConsumers(t *testing.T) {
	f := NewFeed[string]()
	for i := range 3 {
		f.Put(fmt.Sprint(i), 0)
	}
	f.Close("")
	if f.All(func(string) bool { return false }) {
		t.Error("complete after the first event")
	}
	if !f.All(func(string) bool {
		if got := all(f); len(got) != 0 {
			t.Errorf("a second consumer got %q", got)
		}
		return true
	}) {
		t.Error("not complete")
	}
}

func TestAppendTail(t *testing.T) {
	var all, tail []byte
	for i, n := range []int{0, 1, tailLength - 2, 1, 1, 5, tailLength, 3 * tailLength, 7, tailLength - 7, tailLength + 1} {
		piece := bytes.Repeat([]byte{byte('a' + i)}, n)
		all = append(all, piece...)
		tail = appendTail(tail, piece)
		if want := all[max(0, len(all)-tailLength):]; !bytes.Equal(tail, want) {
			t.Fatalf("after %d pieces: %d bytes, want %d", i+1, len(tail), len(want))
		}
	}
}
