package runtime

import "io"

// followed are the ends of a run that is followed: its input comes from a reader, and its
// output goes by.
type followed struct {
	options RunOptions
	limit   int64 // bytes of each output, where more is to end the run
	full    chan struct{}
	feed    *feed

	stdin          supply
	stdout, stderr *flow
	last           *passing // what stderr is read through
}

func newFollowed(t *task, o RunOptions) *followed {
	return &followed{options: o, limit: t.limits.Output, full: make(chan struct{}), feed: t.feed, stdin: newSupply(o)}
}

func (e *followed) open(s *streams) (err error) {
	if err = e.stdin.open(s); err != nil {
		return err
	}
	onFull := e.options.onFull(e.full)
	out, err := s.pipeOut()
	if err != nil {
		return err
	}
	e.stdout = newFlow(e.feed, &passing{from: out, left: e.limit, onFull: onFull}, stdoutEvent)
	if out, err = s.pipeOut(); err != nil {
		return err
	}
	e.last = &passing{from: out, left: e.limit, onFull: onFull}
	e.stderr = newFlow(e.feed, e.last, stderrEvent)
	return nil
}

func (e *followed) pump(s *streams) {
	s.pumps.Go(e.stdout.pump)
	s.pumps.Go(e.stderr.pump)
	e.stdin.pump()
}

func (e *followed) drain() { e.stdin.to.Close() }

func (e *followed) result(*Result) (stderrTail []byte, err error) {
	return e.last.tail, e.stdin.failure()
}

// passing is an output that is not kept.
type passing struct {
	from   io.Reader
	left   int64 // bytes up to the limit
	onFull func()
	tail   []byte
}

func (p *passing) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	p.tail = appendTail(p.tail, b[:n])
	if p.left -= int64(n); p.left < 0 {
		p.onFull()
	}
	return n, err
}

// flow moves one output to a feed. It has two buffers: what one has is with who
// ranges while the other is filled.
type flow struct {
	feed  *feed
	from  io.Reader
	event func([]byte) Event

	buffers [buffersOfFlow][]byte
	turn    int // the last one that was filled
	free    int // how many are; guarded by the feed's lock
}

const buffersOfFlow = 2

func newFlow(f *feed, from io.Reader, event func([]byte) Event) *flow {
	return &flow{feed: f, from: from, event: event, free: buffersOfFlow}
}

func stdoutEvent(b []byte) Event { return StdoutEvent{b} }
func stderrEvent(b []byte) Event { return StderrEvent{b} }

func (w *flow) pump() {
	size := pipeSize
	for {
		buf := w.buffer(size)
		n, err := w.from.Read(buf)
		if n > 0 {
			w.feed.put(arrival{event: w.event(buf[:n]), flow: w})
		}
		if err != nil {
			return
		}
		size = len(roomier(buf, n))
	}
}

// buffer waits for one of at least that size, unless the run has ended.
func (w *flow) buffer(size int) []byte {
	if !w.feed.lend(w) {
		return make([]byte, size)
	}
	w.turn = (w.turn + 1) % buffersOfFlow // they come back in the order in which they went
	buf := &w.buffers[w.turn]
	if len(*buf) < size {
		*buf = make([]byte, size)
	}
	return *buf
}
