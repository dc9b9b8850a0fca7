package stdio

import (
	"io"
	"sync"
)

// Streams connect a run's standard streams to the host.
type Streams interface {
	// Open adds the run's descriptors 0 to 2.
	Open(p *Pipes) error

	// Start begins to move data.
	Start()

	// Drain closes the input and reads all output. The run has ended, and Pipes.End has been
	// called.
	Drain()

	// StderrTail returns the last 4 KiB of standard error, after Drain.
	StderrTail() []byte

	// Err returns the error of the caller's standard input, if any.
	Err() error
}

// Pumped are streams that goroutines move: standard input comes from a reader, output goes
// to sinks.
type Pumped struct {
	Stdin          io.Reader // nil: empty
	Stdout, Stderr Sink

	in             stdin
	stdout, stderr *Reader
	pumps          sync.WaitGroup
}

// Open implements Streams.
func (s *Pumped) Open(p *Pipes) (err error) {
	s.in = stdin{from: s.Stdin, failed: make(chan error, 1)}
	if s.in.to, err = p.ToGuest(); err != nil {
		return err
	}
	if s.stdout, err = p.FromGuest(); err != nil {
		return err
	}
	if s.stderr, err = p.FromGuest(); err != nil {
		return err
	}
	s.stderr.keepTail = true
	return nil
}

// Start implements Streams.
func (s *Pumped) Start() {
	s.pump(s.stdout, s.Stdout)
	s.pump(s.stderr, s.Stderr)
	s.in.start()
}

func (s *Pumped) pump(from *Reader, to Sink) {
	s.pumps.Go(func() {
		defer close(from.closed)
		Pump(from, to)
	})
}

// Drain implements Streams.
func (s *Pumped) Drain() {
	s.in.to.Close()
	s.pumps.Wait()
}

// StderrTail implements Streams.
func (s *Pumped) StderrTail() []byte { return s.stderr.Tail() }

// Err implements Streams.
func (s *Pumped) Err() error { return s.in.err() }

// Flush waits until the sinks have received all that the run has written so far, and flushes
// them.
func (s *Pumped) Flush() {
	s.stdout.Flush()
	s.stderr.Flush()
}
