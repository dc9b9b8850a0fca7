package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// captured are the ends of a run that is waited for: its input comes from a reader,
// and its output is kept.
type captured struct {
	options RunOptions
	limit   int64 // bytes of each output
	full    chan struct{}

	stdin          *os.File
	stdinFailed    chan error // at most one: the caller's reader's
	stdout, stderr *capture
}

func newCaptured(t *task, o RunOptions) *captured {
	return &captured{options: o, limit: t.limits.Output, full: make(chan struct{}), stdinFailed: make(chan error, 1)}
}

func (c *captured) open(s *streams) (err error) {
	if c.stdin, err = s.pipeIn(); err != nil {
		return err
	}
	onFull := func() {}
	if c.options.OnOutputLimit == KillOnOutput {
		onFull = sync.OnceFunc(func() { close(c.full) })
	}
	out, err := s.pipeOut()
	if err != nil {
		return err
	}
	c.stdout = &capture{from: out, limit: c.limit, stream: c.options.OnStdout, onFull: onFull}
	if out, err = s.pipeOut(); err != nil {
		return err
	}
	c.stderr = &capture{from: out, limit: c.limit, stream: c.options.OnStderr, onFull: onFull}
	return nil
}

func (c *captured) pump(s *streams) {
	s.pumps.Go(c.stdout.pump)
	s.pumps.Go(c.stderr.pump)
	if c.options.Stdin == nil {
		c.stdin.Close()
		return
	}
	// Not waited for: the caller's Read may block for ever.
	go func() {
		in := &failing{from: c.options.Stdin}
		_, _ = io.Copy(c.stdin, in) // the run need not read it all
		if in.err != nil {
			c.stdinFailed <- in.err
		}
		c.stdin.Close()
	}()
}

func (c *captured) drain() { c.stdin.Close() }

// result fails where the run did not get all of the caller's standard input, as far as
// that is the caller's doing.
func (c *captured) result(res *Result) (stderrTail []byte, err error) {
	select {
	case err := <-c.stdinFailed:
		return nil, fmt.Errorf("read standard input: %w", err)
	default:
	}
	res.Stdout, res.Stderr = c.stdout.kept, c.stderr.kept
	res.Truncated.Stdout, res.Truncated.Stderr = c.stdout.truncated, c.stderr.truncated
	return c.stderr.tail, nil
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
		c.tail = appendTail(c.tail, b[room:])
		b = b[:room]
		c.truncated = true
		c.onFull()
	}
	c.kept = append(c.kept, b...)
}

// appendTail appends, and keeps the end.
func appendTail(tail, b []byte) []byte {
	tail = append(tail, b[max(0, len(b)-maxTail):]...)
	return tail[max(0, len(tail)-maxTail):]
}
