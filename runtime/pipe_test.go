package runtime

import (
	"io"
	"sync"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"
)

// A pipe that was full is widened, and what is in it at the end of the run still comes.
func TestPipeWidens(t *testing.T) {
	s := &streams{}
	defer s.close()
	r, err := s.pipeOut()
	if err != nil {
		t.Fatal(err)
	}
	w := s.guest[0]
	room := func() int {
		n, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	buf := make([]byte, pipeSize)
	for _, step := range []struct{ written, want int }{{pipeSize / 2, pipeSize}, {pipeSize, widePipe}, {1, widePipe}} {
		if _, err := w.Write(make([]byte, step.written)); err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadAtLeast(r, buf, step.written); n != step.written || err != nil {
			t.Fatal(n, err)
		}
		if got := room(); got != step.want {
			t.Errorf("after %d bytes at once it holds %d, want %d", step.written, got, step.want)
		}
	}
	if _, err := w.Write(make([]byte, widePipe)); err != nil {
		t.Fatal(err)
	}
	if err := r.file.SetReadDeadline(past); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); len(rest) != widePipe || err != nil {
		t.Errorf("then %d bytes, %v", len(rest), err)
	}
}

// All that was written comes, however late each Read is: whoever waits for a processor finds
// its deadline over.
func TestPipeReadLate(t *testing.T) {
	s := &streams{}
	defer s.close()
	r, err := s.pipeOut()
	if err != nil {
		t.Fatal(err)
	}
	sent := make([]byte, 1000)
	for range 20 {
		if _, err := s.guest[0].Write(sent); err != nil {
			t.Fatal(err)
		}
		late := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			for {
				_ = r.file.SetReadDeadline(past)
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
		r.draining = false
	}
}
