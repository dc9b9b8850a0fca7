package runtime

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// cellStreams are the ends of a context: its input is empty, and its output becomes
// lines of the cell that goes on.
type cellStreams struct {
	stdin          *os.File
	stdout, stderr *cellStream
}

func newCellStreams(c *cells) *cellStreams {
	return &cellStreams{stdout: newCellStream(c, fromStdout, LogStdout), stderr: newCellStream(c, fromStderr, LogStderr)}
}

func (e *cellStreams) open(s *streams) (err error) {
	if e.stdin, err = s.pipeIn(); err != nil {
		return err
	}
	if e.stdout.from, err = s.pipeOut(); err != nil {
		return err
	}
	e.stderr.from, err = s.pipeOut()
	return err
}

func (e *cellStreams) pump(s *streams) {
	e.stdin.Close()
	s.pumps.Go(e.stdout.pump)
	s.pumps.Go(e.stderr.pump)
}

func (e *cellStreams) drain() {
	e.stdout.end()
	e.stderr.end()
}

func (e *cellStreams) result(*Result) ([]byte, error) { return e.stderr.tail, nil }

// begin bounds the lines of a cell.
func (e *cellStreams) begin(characters int) {
	e.stdout.bound(characters)
	e.stderr.bound(characters)
}

// flush has all that was written so far belong to the cell that has ended, and the rest
// to none.
func (e *cellStreams) flush() {
	e.stdout.flush()
	e.stderr.flush()
}

// cellStream is one stream of a context.
type cellStream struct {
	from   *pipeReader
	cells  *cells
	source int
	split  *lineSplitter // the pump's
	tail   []byte        // the end of all that came; the pump's
	most   atomic.Int64  // bytes of a line
	gone   chan struct{} // closed when the pump has returned

	mu    sync.Mutex
	asked chan struct{} // closed when the flush that is under way is done
	ended bool          // the process has
}

func newCellStream(c *cells, source int, level LogLevel) *cellStream {
	s := &cellStream{cells: c, source: source, gone: make(chan struct{})}
	s.split = &lineSplitter{line: func(b []byte) { c.lines[source].add(level, string(b)) }}
	s.bound(idleBounds.LogLength)
	return s
}

func (s *cellStream) bound(characters int) { s.most.Store(int64(utf8.UTFMax * (characters + 1))) }

// pump takes in what comes, to the end of the process.
func (s *cellStream) pump() {
	defer close(s.gone)
	for buf := make([]byte, 16<<10); ; {
		n, err := s.from.file.Read(buf)
		s.take(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) && s.settle(buf) {
			continue
		}
		if err != nil {
			s.split.end()
			return
		}
	}
}

func (s *cellStream) take(b []byte) {
	s.split.most = max(int(s.most.Load()), len(s.split.rest))
	s.split.take(b)
	s.tail = appendTail(s.tail, b)
}

// settle takes in what was written until now. It reports whether more may come.
func (s *cellStream) settle(buf []byte) bool {
	last := s.hasEnded() // before looking: what ends meanwhile may write before that
	rest := &pipeReader{file: s.from.file, draining: true, rest: s.from.waiting()}
	for {
		n, err := rest.Read(buf)
		s.take(buf[:n])
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last {
		return false
	}
	next := time.Time{}
	if s.ended {
		next = past
	}
	_ = s.from.file.SetReadDeadline(next) // fails only for what is closed
	if s.asked != nil {
		s.split.end()
		s.cells.rest(s.source)
		close(s.asked)
		s.asked = nil
	}
	return true
}

func (s *cellStream) hasEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (s *cellStream) flush() {
	done := make(chan struct{})
	s.mu.Lock()
	s.asked = done
	_ = s.from.file.SetReadDeadline(past)
	s.mu.Unlock()
	select {
	case <-done:
	case <-s.gone:
	}
}

// end has the pump return when it has taken in what there is.
func (s *cellStream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	_ = s.from.file.SetReadDeadline(past)
}
