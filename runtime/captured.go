package runtime

import (
	"io"
	"sync"
)

// captured are the ends of a run that is waited for: its input comes from a reader,
// and its output is kept.
type captured struct {
	options RunOptions
	limit   int64 // bytes of each output
	full    chan struct{}

	stdin          supply
	stdout, stderr *capture
}

func newCaptured(t *task, o RunOptions) *captured {
	return &captured{options: o, limit: t.limits.Output, full: make(chan struct{}), stdin: newSupply(o)}
}

func (c *captured) open(s *streams) (err error) {
	if err = c.stdin.open(s); err != nil {
		return err
	}
	onFull := c.options.onFull(c.full)
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
	c.stdin.pump()
}

func (c *captured) drain() { c.stdin.to.Close() }

func (c *captured) result(res *Result) (stderrTail []byte, err error) {
	if err := c.stdin.failure(); err != nil {
		return nil, err
	}
	res.Stdout, res.Stderr = c.stdout.kept, c.stderr.kept
	res.Truncated.Stdout, res.Truncated.Stderr = c.stdout.truncated, c.stderr.truncated
	return c.stderr.tail, nil
}

// onFull is what is to be called when an output is over its limit.
func (o RunOptions) onFull(full chan struct{}) func() {
	if o.OnOutputLimit != KillOnOutput {
		return func() {}
	}
	return sync.OnceFunc(func() { close(full) })
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
	buf := make([]byte, pipeSize)
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
		buf = roomier(buf, n)
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
	b = b[max(0, len(b)-maxTail):]
	if over := len(tail) + len(b) - maxTail; over > 0 {
		tail = tail[:copy(tail, tail[over:])]
	}
	return append(tail, b...)
}
