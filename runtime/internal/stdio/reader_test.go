package stdio

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"gaol/internal/mux"
)

// A full pipe is enlarged, and its content at the end of the run is still read.
func TestPipeWidens(t *testing.T) {
	s := &Pipes{}
	defer s.Close()
	r, err := s.FromGuest()
	if err != nil {
		t.Fatal(err)
	}
	w := s.Guest[0].(*os.File)
	room := func() int {
		n, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	buf := make([]byte, pipeSize)
	for _, step := range []struct{ written, want int }{{pipeSize / 2, pipeSize}, {pipeSize, largePipe}, {1, largePipe}} {
		if _, err := w.Write(make([]byte, step.written)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadAtLeast(r, buf, step.written); n != step.written || err != nil {
			t.Fatal(n, err)
		}
		if got := room(); got != step.want {
			t.Errorf("after a read of %d bytes the capacity is %d, want %d", step.written, got, step.want)
		}
	}
	if _, err := w.Write(make([]byte, largePipe)); err != nil {
		t.Fatal(err)
	}
	r.End()
	if rest, err := io.ReadAll(r); len(rest) != largePipe || err != nil {
		t.Errorf("then %d bytes, %v", len(rest), err)
	}
}

// All bytes are read, however late each Read is: a goroutine that waits for a processor may
// find its deadline exceeded.
func TestPipeReadLate(t *testing.T) {
	s := &Pipes{}
	defer s.Close()
	r, err := s.FromGuest()
	if err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 1000)
	for range 20 {
		if _, err := s.Guest[0].Write(sent); err != nil {
			t.Fatal(err)
		}
		late := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			for {
				r.End()
				select {
				case <-late:
					return
				default:
				}
			}
		})
		got, err := io.ReadAll(iotest.OneByteReader(r))
		close(late)
		all.Wait()
		if len(got) != len(sent) || err != nil {
			t.Fatalf("%d bytes of %d, %v", len(got), len(sent), err)
		}
		r.left, r.ended = -1, false
	}
}

// pumpLines splits the content of a pipe into lines, and returns the reader and the writing
// end. lines returns those since the previous call; "|" is a flush.
func pumpLines(t *testing.T, onLine func()) (r *Reader, w *os.File, lines func() []string, start func()) {
	t.Helper()
	from, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { from.Close(); w.Close() })
	r = NewReader(from)
	r.keepTail = true
	var mu sync.Mutex
	var got []string
	add := func(line string) {
		mu.Lock()
		got = append(got, line)
		mu.Unlock()
	}
	sink := NewLines(100, func(line string) { add(line); onLine() })
	sink.OnFlush = func() { add("|") }
	lines = func() []string {
		mu.Lock()
		defer mu.Unlock()
		list := got
		got = nil
		return list
	}
	r.onFlush = sink.Flush
	return r, w, lines, func() {
		go func() {
			defer close(r.closed)
			Pump(r, sink)
		}()
	}
}

// Flush passes on all that was written before, and later bytes arrive as usual.
func TestFlush(t *testing.T) {
	r, w, lines, start := pumpLines(t, func() {})
	start()
	for range 50 {
		if _, err := io.WriteString(w, "first\nsecond\nrest"); err != nil {
			t.Fatal(err)
		}
		r.Flush()
		if got := lines(); !slices.Equal(got, []string{"first", "second", "rest", "|"}) {
			t.Fatalf("got %q", got)
		}
	}
	if _, err := io.WriteString(w, "after\n"); err != nil {
		t.Fatal(err)
	}
	r.Flush()
	if got := lines(); !slices.Equal(got, []string{"after", "|"}) {
		t.Errorf("got %q", got)
	}
}

// After End the rest is read, and nothing waits for other writers.
func TestEnd(t *testing.T) {
	r, w, lines, start := pumpLines(t, func() {})
	start()
	if _, err := io.WriteString(w, "last words"); err != nil {
		t.Fatal(err)
	}
	r.End() // w is still open, as in a child process that escaped
	<-r.closed
	r.Flush() // returns without waiting
	if got := lines(); !slices.Equal(got, []string{"last words", "|"}) || string(r.Tail()) != "last words" {
		t.Errorf("got %q, tail %q", got, r.Tail())
	}
}

// Bytes that a process writes during a flush, before it exits, are read, too.
func TestEndDuringFlush(t *testing.T) {
	flushing, proceed := make(chan struct{}, 1), make(chan struct{})
	r, w, _, start := pumpLines(t, func() {
		select {
		case flushing <- struct{}{}:
		default:
		}
		<-proceed
	})
	if _, err := io.WriteString(w, "first\n"); err != nil {
		t.Fatal(err)
	}
	flushed := make(chan struct{})
	go func() { r.Flush(); close(flushed) }()
	start()
	<-flushing
	if _, err := io.WriteString(w, "last words"); err != nil {
		t.Fatal(err)
	}
	r.End()
	close(proceed)
	<-r.closed
	if <-flushed; string(r.Tail()) != "first\nlast words" {
		t.Errorf("%q", r.Tail())
	}
}

// agentTerminal is a terminal without a descriptor: an agent sends its output.
type agentTerminal struct{ *mux.Stream }

func (agentTerminal) SyscallConn() (syscall.RawConn, error) { return nil, errors.ErrUnsupported }

// The rest of the output of an agent's terminal is read however late it is. A flush and the end need no descriptor.
func TestTerminalOfAgent(t *testing.T) {
	host, guest := net.Pipe()
	client, server := mux.Client(host), mux.Server(guest)
	defer server.Close()
	defer client.Close()
	opened, err := client.Open()
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r := NewTerminalReader(agentTerminal{opened})
	var sink collector
	var pump sync.WaitGroup
	pump.Go(func() { r.Pump(&sink) })
	write := func(text string) {
		if _, err := io.WriteString(terminal, text); err != nil {
			t.Error(err)
		}
	}
	write("up")
	r.Flush()
	r.End()
	time.Sleep(5 * drainWait)
	write(", the rest")
	terminal.Close()
	pump.Wait()
	if got := string(sink); got != "up, the rest" {
		t.Errorf("%q", got)
	}
}

// collector is a sink that keeps everything.
type collector []byte

func (c *collector) Buffer(n int) []byte { return make([]byte, n) }
func (c *collector) Write(b []byte)      { *c = append(*c, b...) }
