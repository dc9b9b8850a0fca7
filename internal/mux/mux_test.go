package mux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gaol/internal/kernfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns the two sides of a connection, which end with the test.
func pair(t testing.TB) (client, server *Session) {
	t.Helper()
	own, file, err := kernfile.SocketPair(syscall.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	client, server = Client(own), Server(other)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// open returns both ends of a new stream.
func open(t testing.TB, client, server *Session) (c, s *Stream) {
	t.Helper()
	c, err := client.Open()
	if err == nil {
		s, err = server.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// Streams carry bytes in both directions at the same time. A stream without a reader does not block others.
func TestStreams(t *testing.T) {
	client, server := pair(t)
	full, unread := open(t, client, server)
	if err := full.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := full.Write(make([]byte, 2*Window)); n != Window || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d, %v, want the window and a deadline", n, err)
	}
	var work sync.WaitGroup
	for i := range 20 {
		c, s := open(t, client, server)
		text := make([]byte, rand.N(3*Window))
		for j := range text {
			text[j] = byte(i + j)
		}
		for _, end := range []*Stream{c, s} {
			work.Go(func() {
				if _, err := end.Write(text); err != nil {
					t.Error(err)
				}
				if err := end.CloseWrite(); err != nil {
					t.Error(err)
				}
			})
			work.Go(func() {
				if got, err := io.ReadAll(end); err != nil || !bytes.Equal(got, text) {
					t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
				}
			})
		}
	}
	work.Wait()
	if got, err := io.ReadAll(io.LimitReader(unread, Window)); len(got) != Window || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Data that was written before Close arrives; then the other side's writes fail. After a reset nothing arrives.
func TestClose(t *testing.T) {
	client, server := pair(t)
	c, s := open(t, client, server)
	if _, err := c.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(s); string(text) != "last" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for {
		if _, err := s.Write([]byte("x")); errors.Is(err, syscall.EPIPE) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	c, s = open(t, client, server)
	if _, err := c.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	for { // until the reset has arrived
		if _, err := s.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNRESET) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The end of a session ends all that waits on its streams. What has arrived can be read.
func TestEnd(t *testing.T) {
	client, server := pair(t)
	c, s := open(t, client, server)
	if _, err := c.Write([]byte("arrived")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	waits := make(chan error, 2)
	go func() { _, err := c.Read(make([]byte, 1)); waits <- err }()
	go func() { _, err := client.Accept(); waits <- err }()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-waits; !errors.Is(err, ErrEnded) {
			t.Error(err)
		}
	}
	if text, err := io.ReadAll(s); string(text) != "rrived" || !errors.Is(err, ErrEnded) {
		t.Errorf("%q, %v", text, err)
	}
	<-client.Done()
	if _, err := client.Open(); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

// head returns the head of a frame.
func head(k kind, id, length uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{byte(k)}, id), length)
}

// feed returns why a session ends that gets bytes from a hostile side, after opening a stream, which it reads to the end.
func feed(t testing.TB, client bool, hostile []byte) error {
	t.Helper()
	ours, theirs := net.Pipe()
	go io.Copy(io.Discard, theirs)
	s := newSession(ours, client)
	if client {
		stream, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, stream)
	}
	_, _ = theirs.Write(hostile) // the session may have ended
	_ = theirs.Close()
	<-s.Done()
	return s.Err()
}

// A frame that is not allowed ends the session.
func TestHostile(t *testing.T) {
	data := slices.Concat(head(kindData, 1, MaxData), make([]byte, MaxData))
	for name, tc := range map[string]struct {
		client bool
		frames []byte
	}{
		"kind 0":                  {true, head(0, 1, 0)},
		"unknown kind":            {true, head(kindReset+1, 1, 0)},
		"long data":               {true, head(kindData, 1, MaxData+1)},
		"no data":                 {true, head(kindData, 1, 0)},
		"stream 0":                {true, head(kindEnd, 0, 0)},
		"unknown stream":          {true, head(kindEnd, 2, 0)},
		"open by the server":      {true, head(kindOpen, 2, 0)},
		"open of another number":  {false, head(kindOpen, 2, 0)},
		"many streams":            {false, openMany(maxAccepts + 1)},
		"data after the end":      {true, slices.Concat(head(kindEnd, 1, 0), data)},
		"credit that is not owed": {true, append(head(kindCredit, 1, 4), 0, 0, 0, 1)},
		"more than the window":    {false, slices.Concat(head(kindOpen, 1, 0), bytes.Repeat(data, Window/MaxData+1))},
	} {
		if err := feed(t, tc.client, tc.frames); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := feed(t, true, bytes.Repeat(data, 3*Window/MaxData)[:MaxData]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a part of a frame: %v", err)
	}
}

// openMany returns frames that open streams.
func openMany(n uint32) (frames []byte) {
	for id := range n {
		frames = append(frames, head(kindOpen, id+1, 0)...)
	}
	return frames
}

func FuzzFrames(f *testing.F) {
	f.Add(true, slices.Concat(head(kindData, 1, 2), []byte("ab"), head(kindEnd, 1, 0), head(kindStop, 1, 0)))
	f.Add(false, slices.Concat(openMany(3), head(kindReset, 2, 0), head(kindCredit, 3, 4), []byte{0, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, client bool, frames []byte) {
		if err := feed(t, client, frames); err == nil {
			t.Error("no reason")
		}
	})
}
