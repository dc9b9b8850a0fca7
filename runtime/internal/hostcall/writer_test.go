package hostcall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gaol/internal/wire"
)

// slowPipe is a guest that reads on request.
type slowPipe struct {
	read   chan struct{} // one for each Write
	writes [][]byte
	failed error
	closed bool
}

func newSlowPipe() *slowPipe { return &slowPipe{read: make(chan struct{})} }

func (p *slowPipe) Write(b []byte) (int, error) {
	<-p.read
	p.writes = append(p.writes, bytes.Clone(b))
	return len(b), p.failed
}

func (p *slowPipe) Close() error { p.closed = true; return nil }

// readWrites reads n writes, and waits until all goroutines block.
func (p *slowPipe) readWrites(n int) {
	for range n {
		p.read <- struct{}{}
		synctest.Wait()
	}
}

// answerOf returns a frame of size bytes.
func answerOf(call uint32, size int) []byte {
	return wire.AppendAnswer(nil, call, false, bytes.Repeat([]byte("1"), size-wire.AnswerSize))
}

func sizes(list [][]byte) (n []int) {
	for _, b := range list {
		n = append(n, len(b))
	}
	return n
}

// Frames that are sent during a write are written together, and their senders do not wait.
func TestOutboxTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		o := NewWriter(p)
		go o.Answer(0, false, []byte("[0]"))
		synctest.Wait()
		for i := range 100 {
			o.Answer(uint32(i+1), true, []byte("{}"))
		}
		p.readWrites(2)
		if len(p.writes) != 2 || len(p.writes[1]) != 100*(wire.AnswerSize+2) {
			t.Errorf("writes of %d bytes, want one and the other 100", sizes(p.writes))
		}
		if o.writing || len(o.waiting) > 0 {
			t.Errorf("remaining: %+v", o)
		}
	})
}

// If the guest does not read, senders block.
func TestOutboxBounds(t *testing.T) {
	const size, n = maxBatch / 8, 50
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		o := NewWriter(p)
		var sent atomic.Int32
		for i := range n {
			go func() {
				o.Send(answerOf(uint32(i), size))
				sent.Add(1)
			}()
		}
		synctest.Wait()
		if sent.Load() != 8 || len(o.waiting) != maxBatch { // one more is being written
			t.Errorf("%d sent, %d bytes wait", sent.Load(), len(o.waiting))
		}
		p.readWrites(2)
		if sent.Load() > 8+9 {
			t.Errorf("%d sent after two writes", sent.Load())
		}
		close(p.read)
		synctest.Wait()
		if sent.Load() != n {
			t.Errorf("%d of %d sent", sent.Load(), n)
		}
	})
}

// A frame that is too large for the batch is written by its sender, between small ones.
func TestOutboxLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		o := NewWriter(p)
		go o.Answer(0, false, []byte("0"))
		synctest.Wait()
		go o.Answer(1, false, make([]byte, maxBatch))
		synctest.Wait()
		for i := range 4 {
			go o.Answer(uint32(i+2), false, []byte("0"))
			synctest.Wait()
			p.readWrites(1)
		}
		if !slices.Contains(sizes(p.writes), maxBatch+wire.AnswerSize) {
			t.Errorf("it waits behind writes of %d bytes", sizes(p.writes))
		}
		close(p.read)
	})
}

// Post does not wait for the guest, up to a limit.
func TestOutboxPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		o := NewWriter(p)
		var n uint32
		for text := make([]byte, 1000); o.TryAnswer(n, true, text); n++ {
			if n > maxUnsent/1000 {
				t.Fatalf("%d bytes wait", len(o.waiting))
			}
			synctest.Wait()
		}
		if n < 2*256 && len(o.waiting) < maxUnsent-2000 {
			t.Errorf("%d accepted, %d bytes wait", n, len(o.waiting))
		}
		go o.Send(answerOf(0, 100)) // blocks
		synctest.Wait()
		close(p.read)
		synctest.Wait()
		if got, want := len(bytes.Join(p.writes, nil)), int(n)*(1000+wire.AnswerSize)+100; got != want {
			t.Errorf("%d bytes arrived, want %d", got, want)
		}
		if !o.TryAnswer(0, true, nil) {
			t.Error("no room after all was read")
		}
	})
}

// After a failed write nothing more is written, and no sender waits.
func TestOutboxFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		p.failed = os.ErrClosed
		o := NewWriter(p)
		for i := range 20 {
			go o.Send(answerOf(uint32(i), maxBatch/2))
			go o.Answer(uint32(i), false, make([]byte, maxBatch))
		}
		synctest.Wait()
		p.readWrites(1) // a second write would block forever, which synctest detects
		if len(p.writes) != 1 || !p.closed {
			t.Errorf("writes of %d bytes, closed: %v", sizes(p.writes), p.closed)
		}
		if !o.TryAnswer(1, false, nil) || len(o.waiting) > 0 {
			t.Error("a frame after the end waits")
		}
	})
}

// Concurrent senders through a real pipe: each frame arrives once, whole, and in the order of
// its sender.
func TestOutboxConcurrent(t *testing.T) {
	const senders, each = 8, 300
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	o := NewWriter(w)
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for i := range each {
				text := make([]byte, 4+(i*7919)%(2*maxBatch/(1+s*s*s)))
				binary.BigEndian.PutUint32(text, uint32(i))
				switch i % 3 {
				case 0:
					o.Answer(uint32(s), false, text)
				case 1:
					o.Send(wire.AppendAnswer(nil, uint32(s), false, text))
				default:
					for !o.TryAnswer(uint32(s), false, text) {
						time.Sleep(time.Millisecond)
					}
				}
			}
		})
	}
	go func() {
		all.Wait()
		o.Send(make([]byte, maxBatch+1)) // not a frame; waits for the posted ones
		w.Close()
	}()
	next := make([]uint32, senders)
	frames := wire.NewReader(r, func(wire.Kind) int64 { return 1 << 20 })
	for {
		_, body, err := frames.Next()
		if errors.Is(err, wire.ErrFrame) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		s, i := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[5:])
		if i != next[s] {
			t.Fatalf("frame %d of sender %d, want %d", i, s, next[s])
		}
		next[s]++
	}
	for s, n := range next {
		if n != each {
			t.Errorf("sender %d: %d frames", s, n)
		}
	}
	r.Close()
}
