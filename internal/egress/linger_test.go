package egress

import (
	"io"
	"net"
	"testing"
	"time"
)

// When a guest has ended, the server gets the last data that it sent, unless it does not read that.
func TestEndOfGuest(t *testing.T) {
	const size = 300 << 10
	w := newWorld(t, `"allow"`, Limits{}, 9)
	accepted, read, done := make(chan net.Conn), make(chan struct{}), make(chan int64, 1)
	w.listen(publicV4, 9, func(c net.Conn) {
		accepted <- c
		<-read
		n, _ := io.Copy(io.Discard, c)
		done <- n
	})
	// The guest sends what fits, and ends.
	send := func(most int) (sent int64) {
		c := w.dial(publicV4.String(), 9)
		<-accepted
		for part := make([]byte, 16<<10); sent < int64(most); {
			_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
			n, err := c.Write(part)
			if sent += int64(n); err != nil {
				break
			}
		}
		c.Close()
		return sent
	}
	again := func() {
		read = make(chan struct{})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.client = NewClient(w.client.rules, Limits{}, nil, Observer{})
	}
	for try := range 10 { // a busy machine may let this server read nothing for the time that stalls it
		sent := send(size)
		close(read)
		w.client.End()
		n := <-done
		again()
		if n == sent {
			break
		}
		if try == 9 {
			t.Errorf("%d bytes of %d arrived", n, sent)
		}
	}
	sent := send(1 << 30)
	w.client.End()
	for w.client.isOpen() {
		time.Sleep(time.Millisecond)
	}
	close(read)
	if n := <-done; n >= sent {
		t.Errorf("%d bytes arrived, although the server did not read", n)
	}
}

func (c *Client) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > 0
}
