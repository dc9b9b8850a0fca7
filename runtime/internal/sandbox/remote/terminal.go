package remote

import (
	"errors"
	"os"
	"syscall"

	"gaol/internal/mux"
	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
)

// terminal is a terminal of the sandbox.
type terminal struct {
	*mux.Stream
	sandbox *Sandbox
	agent.Number
}

// guestEnd is the guest's end of a terminal, which only the agent has.
type guestEnd struct {
	sandbox.Stream
	number uint64
}

// Close implements sandbox.Stream: the terminal's Close closes all ends.
func (guestEnd) Close() error { return nil }

// OpenTerminal implements sandbox.Sandbox.
func (s *Sandbox) OpenTerminal(size sandbox.TerminalSize) (sandbox.Terminal, error) {
	n := agent.Number{Number: s.last.Add(1)}
	limit, cancel := s.late()
	defer cancel()
	stream, _, err := open[struct{}](limit, s, "terminal", agent.Size{Number: n, Size: size})
	if err != nil {
		return nil, err
	}
	return &terminal{stream, s, n}, nil
}

// Guest implements sandbox.Terminal.
func (t *terminal) Guest() sandbox.Stream { return guestEnd{number: t.Number.Number} }

// EndOutput implements sandbox.Terminal.
func (t *terminal) EndOutput() { _ = t.sandbox.do("endOutput", t.Number) } // it may be closed

// Resize implements sandbox.Terminal.
func (t *terminal) Resize(size sandbox.TerminalSize) error {
	return t.closed(t.sandbox.do("resize", agent.Size{Number: t.Number, Size: size}))
}

// EndOfInput implements sandbox.Terminal.
func (t *terminal) EndOfInput() (byte, error) {
	key, err := soon[byte](t.sandbox, "endOfInput", t.Number)
	return key, t.closed(err)
}

// closed returns the error of an operation on a terminal that may be closed.
func (t *terminal) closed(err error) error {
	if errors.Is(err, sandbox.ErrClosed) {
		return os.ErrClosed
	}
	return err
}

// SyscallConn implements [syscall.Conn]: there is no descriptor.
func (t *terminal) SyscallConn() (syscall.RawConn, error) { return nil, errors.ErrUnsupported }
