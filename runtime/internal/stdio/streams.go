package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"gaol/runtime/internal/sandbox"
)

// Streams connect a run's standard streams to the host. With Out and Err, goroutines move the data: from In
// to the run, and from the run to the sinks. Otherwise the caller does, by the fields that Open sets.
type Streams struct {
	OpenTerminal func() (sandbox.Terminal, error) // nil: pipes
	In           io.Reader                        // nil: empty
	Out, Err     Sink

	Stdin          io.WriteCloser
	Stdout, Stderr io.Reader
	Terminal       sandbox.Terminal // nil: pipes

	keyboard *keyboard
	outputs  []*Output  // the last one is standard error, or the terminal
	failed   chan error // has at most one element: the error of In
	pumps    sync.WaitGroup
}

// Open adds the run's descriptors 0 to 2.
func (s *Streams) Open(p *Pipes) error {
	if s.OpenTerminal != nil {
		return s.openTerminal(p)
	}
	in, err := p.ToGuest()
	if err != nil {
		return err
	}
	s.Stdin, s.failed = &input{file: in}, make(chan error, 1)
	for _, out := range []*io.Reader{&s.Stdout, &s.Stderr} {
		r, err := p.FromGuest()
		if err != nil {
			return err
		}
		s.outputs = append(s.outputs, newOutput(r))
		*out = s.outputs[len(s.outputs)-1]
	}
	return nil
}

func (s *Streams) openTerminal(p *Pipes) error {
	t, err := s.OpenTerminal()
	if err != nil {
		return err
	}
	s.Terminal = t
	r := p.addReader(NewTerminalReader(t))
	p.Guest = append(p.Guest, t.Guest(), t.Guest(), t.Guest())
	screen := newOutput(r)
	s.keyboard = &keyboard{input: input{file: t}, terminal: t}
	s.outputs = []*Output{screen}
	s.Stdin, s.Stdout, s.Stderr = s.keyboard, screen, strings.NewReader("")
	return nil
}

// Start begins to move data.
func (s *Streams) Start() {
	if s.Out == nil {
		return
	}
	for i, to := range []Sink{s.Out, s.Err} {
		from := s.outputs[i].pipe
		s.pumps.Go(func() { from.Pump(to) })
	}
	if s.In == nil {
		_ = s.Stdin.Close()
		return
	}
	// Nothing waits for this goroutine: the caller's Read may block forever.
	go func() {
		from := &errorReader{Reader: s.In}
		_, _ = io.Copy(s.Stdin, from) // its error is mostly EPIPE: the run need not read everything
		if from.err != nil {
			s.failed <- from.err
		}
		_ = s.Stdin.Close()
	}()
}

// Drain closes the input and reads all output. The run has ended, and Pipes.End has been
// called.
func (s *Streams) Drain() {
	if s.Terminal != nil {
		s.keyboard.closed.Store(true)
		_ = s.keyboard.file.SetWriteDeadline(expired) // ends a Write that the guest does not read
		s.Terminal.EndOutput()                        // so that the output ends, unless the terminal is open in another run
	} else {
		_ = s.Stdin.Close()
	}
	s.pumps.Wait()
	if s.Out == nil {
		for _, o := range s.outputs { // the caller can read it after the run has released its pipes
			o.drain()
		}
	}
}

// StderrTail returns the last 4 KiB of standard error, after Drain.
func (s *Streams) StderrTail() []byte { return s.outputs[len(s.outputs)-1].tail() }

// Failed returns the error of In, if that is why the run did not get all of its input.
func (s *Streams) Failed() error {
	select {
	case err := <-s.failed:
		return fmt.Errorf("read standard input: %w", err)
	default:
		return nil
	}
}

// Flush waits until the sinks have received all that the run has written so far, and flushes
// them.
func (s *Streams) Flush() {
	for _, o := range s.outputs {
		o.pipe.Flush()
	}
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
	Guest []io.ReadWriteCloser // the run's descriptors from 0 on

	host    []io.Closer
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
		_ = f.Close()
	}
	p.Guest = nil
}

// Close closes all files.
func (p *Pipes) Close() {
	p.CloseGuest()
	for _, f := range p.host {
		_ = f.Close()
	}
}

// PassSignals calls send with each signal until there are no more, or ended is closed.
func PassSignals(signals <-chan syscall.Signal, ended <-chan struct{}, send func(syscall.Signal)) {
	for {
		select {
		case s, ok := <-signals:
			if !ok {
				return
			}
			send(s)
		case <-ended:
			return
		}
	}
}

// input is the writing end of a process's standard input.
type input struct{ file sandbox.Stream }

// Write returns io.ErrClosedPipe once no process can read it.
func (i *input) Write(b []byte) (int, error) {
	n, err := i.file.Write(b)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EIO) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.ErrClosedPipe
	}
	return n, err
}

// Close ends the process's input. It is idempotent.
func (i *input) Close() error {
	err := i.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// keyboard is the input of a terminal, whose file is also that of its output.
type keyboard struct {
	input
	terminal sandbox.Terminal
	closed   atomic.Bool
}

// Write types b.
func (k *keyboard) Write(b []byte) (int, error) {
	if k.closed.Load() {
		return 0, io.ErrClosedPipe
	}
	return k.input.Write(b)
}

// Close types the key that ends the input.
func (k *keyboard) Close() error {
	if k.closed.Swap(true) {
		return nil
	}
	key, err := k.terminal.EndOfInput()
	if err == nil && key != 0 { // 0: the program has disabled the key
		_, err = k.input.Write([]byte{key}) // the file stays open: the output is read from it
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) { // the process has ended
		return nil
	}
	return err
}

// Output is an output stream of a process whose caller reads it. While the process runs,
// the caller's Read takes the bytes out of the pipe; without it the pipe fills up and the
// process waits. When the process ends, Drain moves the contents of the pipe here, so that
// nothing is lost and no descriptor stays open: 64 KiB at most, or the largest size of an
// unprivileged pipe (fs.pipe-max-size, 1 MiB).
type Output struct {
	mu   sync.Mutex
	pipe *Reader
	from io.Reader // the pipe or, after drain, its contents
}

func newOutput(r *Reader) *Output {
	r.keepTail = true
	return &Output{pipe: r, from: r}
}

// Read returns io.EOF when the process has ended or closed the stream, and everything is
// read.
func (o *Output) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.from.Read(b)
}

// drain reads the rest of the pipe.
//
// Preconditions: the process and the reader have ended, so that a Read that holds the lock
// returns soon.
func (o *Output) drain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest, _ := io.ReadAll(o.pipe) // any error is the end of the stream
	o.from = bytes.NewReader(rest)
}

// tail returns the last bytes of a stream that has ended.
func (o *Output) tail() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pipe.Tail()
}
