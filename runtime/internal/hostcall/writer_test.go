package hostcall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"

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

// answerOf returns a frame of size bytes.
func answerOf(call uint32, size int) []byte {
	return wire.AppendAnswer(nil, call, false, bytes.Repeat([]byte("1"), size-wire.AnswerSize))
}

// TryAnswer does not wait for the guest, up to a limit.
func TestTryAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		o := NewWriter(p)
		var n int
		for o.TryAnswer(uint32(n), true, make([]byte, 1000)) {
			n++
		}
		if n != MaxPending {
			t.Errorf("%d answers wait", n)
		}
		go o.Send(answerOf(0, 100)) // blocks
		synctest.Wait()
		close(p.read)
		synctest.Wait()
		if got, want := len(bytes.Join(p.writes, nil)), n*(1000+wire.AnswerSize)+100; got != want {
			t.Errorf("%d bytes arrived, want %d", got, want)
		}
		if !o.TryAnswer(0, true, nil) {
			t.Error("no room after all was read")
		}
	})
}

// A failed write closes the pipe, because no frame can follow an incomplete one.
func TestWriterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowPipe()
		p.failed = os.ErrClosed
		o := NewWriter(p)
		go o.Send(answerOf(1, 100))
		synctest.Wait()
		p.read <- struct{}{}
		synctest.Wait()
		if !p.closed {
			t.Error("the pipe is open")
		}
	})
}

// Concurrent senders through a real pipe: each frame arrives once, whole, and in the order of
// its sender.
func TestWriterConcurrent(t *testing.T) {
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
				text := make([]byte, 4+(i*7919)%(128<<10/(1+s*s*s)))
				binary.BigEndian.PutUint32(text, uint32(i))
				o.Answer(uint32(s), false, text)
			}
		})
	}
	go func() {
		all.Wait()
		o.Send(make([]byte, 64<<10+1)) // not a frame
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
