package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail"
)

// streams are what connects a run with its host. guest/prelude.cjs says which
// descriptor is what.
type streams struct {
	host  []*os.File // our ends of the pipes
	guest []*os.File // the run's descriptors from 0 on, closed once it has them

	stdin          io.Reader // nil: empty
	stdinPipe      *os.File
	stdinFailed    chan error // at most one: the caller's reader's
	stdout, stderr *capture
	value          *valueReader // nil without a __return
	full           chan struct{}
	pumps          sync.WaitGroup
}

func openStreams(t *task, o RunOptions) (*streams, error) {
	s := &streams{stdin: o.Stdin, stdinFailed: make(chan error, 1), full: make(chan struct{})}
	if err := s.open(t, o); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *streams) open(t *task, o RunOptions) (err error) {
	if s.stdinPipe, err = s.pipeIn(); err != nil {
		return err
	}
	onFull := func() {}
	if o.OnOutputLimit == KillOnOutput {
		onFull = sync.OnceFunc(func() { close(s.full) })
	}
	out, err := s.pipeOut()
	if err != nil {
		return err
	}
	s.stdout = &capture{from: out, limit: t.limits.Output, stream: o.OnStdout, onFull: onFull}
	if out, err = s.pipeOut(); err != nil {
		return err
	}
	s.stderr = &capture{from: out, limit: t.limits.Output, stream: o.OnStderr, onFull: onFull}
	if t.program == nil {
		return nil
	}
	return s.openControl(t)
}

// openControl adds what only a program of Node gets: the way back for its values
// and its own text.
func (s *streams) openControl(t *task) error {
	out, err := s.pipeOut()
	if err != nil {
		return err
	}
	s.value = &valueReader{from: out, limit: t.limits.Value}
	text, err := t.program.open()
	if err != nil {
		return err
	}
	s.guest = append(s.guest, text)
	return nil
}

// pipeOut makes the run's next descriptor one that we read from.
func (s *streams) pipeOut() (*pipeReader, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.host, s.guest = append(s.host, r), append(s.guest, w)
	return &pipeReader{file: r}, nil
}

// pipeIn makes the run's next descriptor one that we write to.
func (s *streams) pipeIn() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.host, s.guest = append(s.host, w), append(s.guest, r)
	return w, nil
}

func (s *streams) start(ctx context.Context, j *jail.Jail, c jail.Command) (*jail.Process, error) {
	c.Stdin, c.Stdout, c.Stderr, c.Files = s.guest[0], s.guest[1], s.guest[2], s.guest[3:]
	p, err := j.Start(ctx, c)
	s.closeGuest()
	return p, err
}

// pump moves the data until drain or the end of each stream.
func (s *streams) pump() {
	s.pumps.Go(s.stdout.pump)
	s.pumps.Go(s.stderr.pump)
	if s.value != nil {
		s.pumps.Go(s.value.pump)
	}
	if s.stdin == nil {
		s.stdinPipe.Close()
		return
	}
	// Not waited for: the caller's Read may block for ever.
	go func() {
		in := &failing{from: s.stdin}
		_, _ = io.Copy(s.stdinPipe, in) // the run need not read it all
		if in.err != nil {
			s.stdinFailed <- in.err
		}
		s.stdinPipe.Close()
	}()
}

// drain waits until all that a run has written is taken in. The run has ended.
func (s *streams) drain() {
	s.stdinPipe.Close()
	for _, f := range s.host {
		_ = f.SetReadDeadline(time.Now()) // fails only for what is closed
	}
	s.pumps.Wait()
}

// stdinError is why the run did not get all of the caller's standard input, as
// far as that is the caller's doing.
func (s *streams) stdinError() error {
	select {
	case err := <-s.stdinFailed:
		return fmt.Errorf("read standard input: %w", err)
	default:
		return nil
	}
}

// failing tells the errors of a reader from those of who is written to.
type failing struct {
	from io.Reader
	err  error
}

func (f *failing) Read(b []byte) (int, error) {
	n, err := f.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

func (s *streams) result() *Result {
	res := &Result{Stdout: s.stdout.kept, Stderr: s.stderr.kept}
	res.Truncated.Stdout, res.Truncated.Stderr = s.stdout.truncated, s.stderr.truncated
	if s.value != nil {
		res.Value = s.value.last
	}
	return res
}

func (s *streams) closeGuest() {
	for _, f := range s.guest {
		f.Close()
	}
	s.guest = nil
}

func (s *streams) close() {
	s.closeGuest()
	for _, f := range s.host {
		f.Close()
	}
}

// lastWait is how long reading waits for bytes that a pipe held at its run's end.
// It matters only where somebody else takes them.
const lastWait = 20 * time.Millisecond

// pipeReader reads a pipe to its end or, once a read deadline has told it that
// the run is gone, until what was written before is read. Another run of the
// runtime may hold the other end: it must not keep this one's caller waiting.
type pipeReader struct {
	file     *os.File
	draining bool
	rest     int // bytes still to be read while draining
}

// Read reads up to len(b) bytes and returns io.EOF at the end.
func (r *pipeReader) Read(b []byte) (int, error) {
	for {
		if r.draining {
			if r.rest <= 0 {
				return 0, io.EOF
			}
			b = b[:min(len(b), r.rest)]
			if err := r.file.SetReadDeadline(time.Now().Add(lastWait)); err != nil {
				return 0, err
			}
		}
		n, err := r.file.Read(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if r.draining {
				return 0, io.EOF
			}
			r.draining, r.rest = true, waiting(r.file)
			continue
		}
		if r.draining {
			r.rest -= n
		}
		return n, err
	}
}

// waiting is how many bytes a pipe holds (FIONREAD, which x/sys calls TIOCINQ). What a run wrote is all there once it
// has ended; what comes later is somebody else's.
func waiting(f *os.File) (n int) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return n
}

// capture takes in one output stream.
type capture struct {
	from   io.Reader
	limit  int64
	stream func([]byte) // may be nil
	onFull func()

	kept      []byte
	tail      []byte // the end of what was not kept
	truncated bool
}

// maxTail is enough for what V8 says when it gives up.
const maxTail = 4 << 10

func (c *capture) pump() {
	buf := make([]byte, 64<<10) // a pipe's usual size
	for {
		n, err := c.from.Read(buf)
		if n > 0 {
			c.keep(buf[:n])
			if c.stream != nil {
				c.stream(buf[:n])
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *capture) keep(b []byte) {
	room := c.limit - int64(len(c.kept))
	if int64(len(b)) > room {
		dropped := b[room:]
		c.tail = append(c.tail, dropped[max(0, len(dropped)-maxTail):]...)
		c.tail = c.tail[max(0, len(c.tail)-maxTail):]
		b = b[:room]
		c.truncated = true
		c.onFull()
	}
	c.kept = append(c.kept, b...)
}
