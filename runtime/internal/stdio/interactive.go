package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"gaol/jail"

	"golang.org/x/sys/unix"
)

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
