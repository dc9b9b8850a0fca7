package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
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

	stdin          *os.File
	failed         chan error // has at most one element: the error of Stdin
	stdout, stderr *Reader
	pumps          sync.WaitGroup
}

// Open implements Streams.
func (s *Pumped) Open(p *Pipes) (err error) {
	s.failed = make(chan error, 1)
	if s.stdin, err = p.ToGuest(); err != nil {
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
	s.copyStdin()
}

func (s *Pumped) pump(from *Reader, to Sink) {
	s.pumps.Go(func() {
		defer close(from.closed)
		Pump(from, to)
	})
}

// Drain implements Streams.
func (s *Pumped) Drain() {
	s.stdin.Close()
	s.pumps.Wait()
}

// StderrTail implements Streams.
func (s *Pumped) StderrTail() []byte { return s.stderr.Tail() }

// Err implements Streams. It returns the error of Stdin, if that is why the run did not get
// all of its input.
func (s *Pumped) Err() error {
	select {
	case err := <-s.failed:
		return fmt.Errorf("read standard input: %w", err)
	default:
		return nil
	}
}

// Flush waits until the sinks have received all that the run has written so far, and flushes
// them.
func (s *Pumped) Flush() {
	s.stdout.Flush()
	s.stderr.Flush()
}

func (s *Pumped) copyStdin() {
	if s.Stdin == nil {
		s.stdin.Close()
		return
	}
	// Nothing waits for this goroutine: the caller's Read may block forever.
	go func() {
		from := &errorReader{Reader: s.Stdin}
		_, _ = io.Copy(s.stdin, from) // its error is mostly EPIPE: the run need not read everything
		if from.err != nil {
			s.failed <- from.err
		}
		s.stdin.Close()
	}()
}

// errorReader remembers the reader's error, which io.Copy does not distinguish from the
// writer's.
type errorReader struct {
	io.Reader
	err error
}

func (r *errorReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// Pipes are the host's and the guest's ends of the files that a run gets.
type Pipes struct {
	Guest []*os.File // the run's descriptors from 0 on

	host    []*os.File
	readers []*Reader
}

// FromGuest adds a descriptor that the run writes to.
func (p *Pipes) FromGuest() (*Reader, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.Guest = append(p.Guest, w)
	return p.addReader(NewReader(r)), nil
}

// ToGuest adds a descriptor that the run reads from.
func (p *Pipes) ToGuest() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.host, p.Guest = append(p.host, w), append(p.Guest, r)
	return w, nil
}

func (p *Pipes) addReader(r *Reader) *Reader {
	p.host, p.readers = append(p.host, r.file), append(p.readers, r)
	return r
}

// End marks the end of the run: all readers read the rest of their pipes and return.
func (p *Pipes) End() {
	for _, r := range p.readers {
		r.End()
	}
}

// CloseGuest closes the guest's ends, once the run has them. A reader gets io.EOF only when all
// processes have closed the other end, this one included.
func (p *Pipes) CloseGuest() {
	for _, f := range p.Guest {
		f.Close()
	}
	p.Guest = nil
}

// Close closes all files.
func (p *Pipes) Close() {
	p.CloseGuest()
	for _, f := range p.host {
		f.Close()
	}
}
