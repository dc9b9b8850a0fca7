package stdio

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail"
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
	for _, o := range s.outputs {
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

	mu     sync.Mutex
	closed bool
}

// Write types b.
func (k *keyboard) Write(b []byte) (int, error) {
	if k.isClosed() {
		return 0, io.ErrClosedPipe
	}
	return k.input.Write(b)
}

// Close types the key that ends the input.
func (k *keyboard) Close() error {
	if !k.markClosed() {
		return nil
	}
	key, err := k.terminal.EndOfInput()
	if err == nil && key != 0 { // 0: the program has disabled the key
		_, err = k.input.Write([]byte{key})
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) { // the process has ended
		return nil
	}
	return err
}

// stop makes a Write return that waits for a guest which does not read.
func (k *keyboard) stop() {
	k.markClosed()
	_ = k.file.SetWriteDeadline(expired)
}

func (k *keyboard) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// markClosed reports whether it was open.
func (k *keyboard) markClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := !k.closed
	k.closed = true
	return was
}
