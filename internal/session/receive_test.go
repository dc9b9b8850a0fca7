package session

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// receiving returns a connection to a socket, and a channel with the messages that it receives.
func receiving(t *testing.T, change func(*Socket)) (*websocket.Conn, <-chan received) {
	t.Helper()
	got := make(chan received, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		c.SetReadLimit(MaxFrame)
		s := NewSocket(c, Client)
		change(s)
		err = s.Receive(func(f Frame) error {
			got <- received{f, nil}
			return nil
		})
		got <- received{Frame{}, err}
	}))
	t.Cleanup(server.Close)
	c, _, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c, got
}

type received struct {
	Frame
	err error
}

// begin sends the begin of a message, and returns the rest's writer.
func begin(t *testing.T, c *websocket.Conn, part []byte) io.WriteCloser {
	t.Helper()
	w, err := c.Writer(context.WithoutCancel(t.Context()), websocket.MessageBinary)
	if err == nil {
		_, err = w.Write(part)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestSlowMessage: a message that does not arrive ends the session, and waiting for one does not.
func TestSlowMessage(t *testing.T) {
	var c *websocket.Conn
	var got <-chan received
	for limit := 50 * time.Millisecond; ; limit *= 4 {
		c, got = receiving(t, func(s *Socket) { s.MessageTimeout = limit })
		time.Sleep(2 * limit) // longer than a message may take
		if err := c.Write(t.Context(), websocket.MessageBinary, Append(nil, KindCancel, 1)); err != nil {
			t.Fatal(err)
		}
		r := <-got
		if r.err == nil && r.Kind == KindCancel {
			break
		}
		if !errors.Is(r.err, ErrSlow) || limit > 10*time.Second { // on a busy machine, a message takes longer
			t.Fatalf("%+v", r)
		}
	}
	begin(t, c, Append(nil, KindRequest, 1, make([]byte, 64<<10))) // more than the client buffers
	if r := <-got; !errors.Is(r.err, ErrSlow) {
		t.Errorf("%+v", r)
	}
}

// TestReservation: a message reserves what its buffer holds while it arrives, and without a reservation its body is
// dropped.
func TestReservation(t *testing.T) {
	const most = 1 << 20
	var held, peak atomic.Int64
	c, got := receiving(t, func(s *Socket) {
		s.Reserve = func(n int) (func(), error) {
			if n > most {
				return nil, io.ErrShortBuffer
			}
			peak.Store(max(peak.Load(), held.Add(int64(n))))
			return func() { held.Add(-int64(n)) }, nil
		}
	})
	for _, size := range []int{2, 5000, most - 1, 4 * most, 100} {
		begin(t, c, Append(nil, KindRequest, 7, make([]byte, size))).Close()
		r := <-got
		if refused := size >= most; r.err != nil || r.ID != 7 || (r.Refused != nil) != refused || !refused && len(r.Body) != size || refused && r.Body != nil {
			t.Fatalf("%d: %v %v, %d bytes", size, r.err, r.Refused, len(r.Body))
		}
		if n := int64(cap(r.Body)); n > held.Load() {
			t.Errorf("%d: %d bytes are reserved for %d", size, held.Load(), n)
		}
		r.Release()
		if held.Load() != 0 {
			t.Errorf("%d: %d bytes stay reserved", size, held.Load())
		}
	}
	begin(t, c, Append(nil, KindStdin, 7, make([]byte, 2*MaxChunk))) // its end is not awaited
	if r := <-got; !errors.Is(r.err, ErrFrame) {
		t.Errorf("a long frame of a kind with a small bound: %v", r.err)
	}
}
