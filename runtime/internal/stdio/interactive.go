package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"gaol/jail"

	"golang.org/x/sys/unix"
)

// Interactive are streams that the caller of a process reads and writes: three pipes, or a
// terminal. Open sets all fields except OpenTerminal.
type Interactive struct {
	OpenTerminal func() (*jail.Terminal, error) // nil: pipes

	Stdin          io.WriteCloser
	Stdout, Stderr io.Reader
	Terminal       *jail.Terminal // nil: pipes

	keyboard *keyboard
	outputs  []*Output // the last one is standard error, or the terminal
}

// Open implements Streams.
func (s *Interactive) Open(p *Pipes) error {
	if s.OpenTerminal != nil {
		return s.openTerminal(p)
	}
	in, err := p.ToGuest()
	if err != nil {
		return err
	}
	s.Stdin = &input{file: in}
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

func (s *Interactive) openTerminal(p *Pipes) error {
	t, err := s.OpenTerminal()
	if err != nil {
		return err
	}
	s.Terminal = t
	r := p.addReader(NewReader(t.Host))
	r.terminal = true
	p.host, p.Guest = append(p.host, t.Kept), append(p.Guest, t.Guest, t.Guest, t.Guest)
	screen := newOutput(r)
	s.keyboard = &keyboard{input: input{file: t.Host}, terminal: t}
	s.outputs = []*Output{screen}
	s.Stdin, s.Stdout, s.Stderr = s.keyboard, screen, strings.NewReader("")
	return nil
}

// Start implements Streams. The caller moves the data.
func (s *Interactive) Start() {}

// Drain implements Streams.
func (s *Interactive) Drain() {
	if s.Terminal != nil {
		s.keyboard.stop()
		s.Terminal.Kept.Close() // so that the output ends, unless the terminal is open in another run
	} else {
		_ = s.Stdin.Close()
	}
	for _, o := range s.outputs { // the caller can read it after the run has released its pipes
		o.drain()
	}
}

// StderrTail implements Streams.
func (s *Interactive) StderrTail() []byte { return s.outputs[len(s.outputs)-1].tail }

// Err implements Streams.
func (s *Interactive) Err() error { return nil }

// input is the writing end of a process's standard input.
type input struct{ file *os.File }

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
	terminal *jail.Terminal
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

// stop makes a Write return that waits for a guest which does not read.
func (k *keyboard) stop() {
	k.closed.Store(true)
	_ = k.file.SetWriteDeadline(expired)
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
	tail []byte
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
	o.from, o.tail = bytes.NewReader(rest), o.pipe.Tail()
}
