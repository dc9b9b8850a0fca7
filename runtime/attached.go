package runtime

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gaol/jail"
)

// attached are the ends of a spawned process: its caller holds them.
type attached struct {
	stdin          *input
	stdout, stderr *outlet
}

func (a *attached) open(s *streams) error {
	in, err := s.pipeIn()
	if err != nil {
		return err
	}
	a.stdin = &input{file: in}
	out, err := s.pipeOut()
	if err != nil {
		return err
	}
	a.stdout = &outlet{from: out}
	if out, err = s.pipeOut(); err != nil {
		return err
	}
	a.stderr = &outlet{from: out}
	return nil
}

func (a *attached) pump(*streams) {}

func (a *attached) drain() {
	_ = a.stdin.Close()
	a.stdout.takeIn()
	a.stderr.takeIn()
}

func (a *attached) result(*Result) ([]byte, error) { return a.stderr.tail, nil }

func (a *attached) hand(p *Process) { p.Stdin, p.Stdout, p.Stderr = a.stdin, a.stdout, a.stderr }

// onTerminal are the ends of a spawned process that has a terminal.
type onTerminal struct {
	jail     *jail.Jail
	size     jail.TerminalSize
	terminal *jail.Terminal
	keys     *keyboard
	screen   *outlet
}

func (o *onTerminal) open(s *streams) (err error) {
	if o.terminal, err = o.jail.OpenTerminal(o.size); err != nil {
		return err
	}
	t := o.terminal
	s.host, s.guest = append(s.host, t.Host, t.Kept), append(s.guest, t.Guest, t.Guest, t.Guest)
	o.keys = &keyboard{input: input{file: t.Host}, terminal: t}
	o.screen = &outlet{from: &pipeReader{file: t.Host, terminal: true}}
	return nil
}

func (o *onTerminal) pump(*streams) {}

func (o *onTerminal) drain() {
	o.keys.end()
	o.terminal.Kept.Close() // so that what is shown ends, unless another run has the terminal open
	o.screen.takeIn()
}

func (o *onTerminal) result(*Result) ([]byte, error) { return o.screen.tail, nil }

func (o *onTerminal) hand(p *Process) {
	p.Stdin, p.Stdout, p.Stderr = o.keys, o.screen, strings.NewReader("")
	p.resize = func(rows, cols uint16) error {
		err := o.terminal.Resize(jail.TerminalSize{Rows: rows, Cols: cols})
		if errors.Is(err, os.ErrClosed) {
			err = os.ErrProcessDone
		}
		return err
	}
}

// input is what a caller writes to a process.
type input struct{ file *os.File }

// Write returns io.ErrClosedPipe once nobody can read it any more.
func (i *input) Write(b []byte) (int, error) {
	n, err := i.file.Write(b)
	if errors.Is(err, os.ErrClosed) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.EIO) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.ErrClosedPipe
	}
	return n, err
}

// Close ends the process's input. A second time it does nothing.
func (i *input) Close() error {
	err := i.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// keyboard is the input of a terminal, whose file is that of its output too.
type keyboard struct {
	input
	terminal *jail.Terminal

	mu     sync.Mutex
	closed bool
}

// Write types.
func (k *keyboard) Write(b []byte) (int, error) {
	if k.isClosed() {
		return 0, io.ErrClosedPipe
	}
	return k.input.Write(b)
}

// Close types what ends the input, and types no more.
func (k *keyboard) Close() error {
	if !k.close() {
		return nil
	}
	key, err := k.terminal.EndOfInput()
	if err == nil && key != 0 { // 0: the program wants none
		_, err = k.input.Write([]byte{key})
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) { // the process has ended
		return nil
	}
	return err
}

// end has a Write that waits for a guest who does not read return.
func (k *keyboard) end() {
	k.close()
	_ = k.file.SetWriteDeadline(past)
}

func (k *keyboard) isClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}

// close reports whether it was open.
func (k *keyboard) close() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := !k.closed
	k.closed = true
	return was
}
