package repl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
)

// transcript records the output to a screen.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// newTestEditor returns a line editor, its screen, and a pipe for keys.
func newTestEditor(t *testing.T) (*lineEditor, *transcript, io.Writer) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	shown := &transcript{}
	e := newLineEditor(t.Context(), r, shown, &history{})
	e.complete = func(_ context.Context, line string) (string, []string) {
		switch {
		case strings.HasSuffix(line, "."):
			return "", []string{"alpha", "beta"}
		case strings.HasSuffix(line, "al"):
			return "al", []string{"alpha", "alphabet"}
		}
		return "", nil
	}
	return e, shown, w
}

func TestLines(t *testing.T) {
	e, shown, keys := newTestEditor(t)
	go func() {
		for _, some := range []string{"one\r", "tw", "o\rthree", "\x03", "four\r", "x.al\tbet\r", "x.\tbeta\r", "\ty\r", "none\t\r", "\x04"} {
			_, _ = io.WriteString(keys, some)
		}
	}()
	for i, want := range []string{"one", "two", "^C", "four", "x.alphabet", "x.beta", "  y", "none", "EOF"} {
		line, err := e.next(i > 0)
		if errors.Is(err, errAbandoned) {
			line, err = "^C", nil
		}
		if errors.Is(err, io.EOF) {
			line, err = "EOF", nil
		}
		if line != want || err != nil {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
	}
	for _, part := range []string{"> one\r\n", "... two\r\n", "^C\r\n", "alpha  beta\r\n"} {
		if !strings.Contains(shown.String(), part) {
			t.Errorf("%q is not in %q", part, shown.String())
		}
	}
}

// One key recalls an input of several lines.
func TestMultiLineRecall(t *testing.T) {
	e, shown, keys := newTestEditor(t)
	e.terminal.History.(*history).keep("f(`\n  a\n`)")
	go func() { _, _ = io.WriteString(keys, "\x1b[A\r") }()
	if line, err := e.next(false); line != "f(`\n  a\n`)" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if !strings.Contains(shown.String(), "> f(`␤  a␤`)") {
		t.Errorf("%q", shown.String())
	}
}

// Ctrl-C cancels the running cell and drops the keys before it; the keys after it are for the next line.
func TestInterrupt(t *testing.T) {
	e, _, keys := newTestEditor(t)
	done := make(chan struct{})
	ctx, stop := e.interruptible(t.Context())
	go func() {
		<-ctx.Done()
		stop()
		close(done)
	}()
	go func() { _, _ = io.WriteString(keys, "dropped\x03next\r") }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the cell was not canceled")
	}
	if line, err := e.next(false); line != "next" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
}

func TestContextEndsReading(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	e := newLineEditor(ctx, r, &transcript{}, &history{})
	why := errors.New("why")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if _, err := e.next(false); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A failure to write ends the session.
func TestWriteError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &screen{stdout: output{fullDisk{}, cancel}}
	s.value("x")
	if err := context.Cause(ctx); err == nil || !strings.Contains(err.Error(), "write standard output: no space") {
		t.Errorf("%v", err)
	}
}

// On a terminal text from the guest is sanitized, and interruptions are shown as such.
func TestShow(t *testing.T) {
	shown := &transcript{}
	s := &screen{shown, shown, true}
	s.log(runtime.Log{Level: runtime.LogLog, Text: "a\x1b[31mb"})
	s.value("\x1b[33m5\x1b[39m\x1b[2J")
	s.failure(&runtime.GuestError{Name: "E\x07", Message: "m", Frame: "> 1 | x"}, "x")
	s.failure(&runtime.GuestError{Name: "CanceledError", Message: "the code was stopped by its host"}, "x")
	s.failure(&runtime.GuestError{Name: "CanceledError", Message: "the code was stopped by its host. It is lost"}, "x")
	want := "a\\x1b[31mb\n\x1b[33m5\x1b[39m\\x1b[2J\x1b[0m\nUncaught E\\x07: m\nInterrupted.\nInterrupted. It is lost\n"
	if got := shown.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNames(t *testing.T) {
	if got := list([]string{"a", "bb"}); got != "a  bb" {
		t.Errorf("%q", got)
	}
	many := strings.Split(strings.Repeat("n ", maxShown+5), " ")[:maxShown+5]
	if got := list(many); !strings.HasSuffix(got, "n  ... and 5 more") {
		t.Errorf("%q", got)
	}
	if got := commonPrefix([]string{"größe", "größer", "grün"}); got != "gr" {
		t.Error(got)
	}
	if got := commonPrefix([]string{"a", "b"}); got != "" {
		t.Error(got)
	}
}

// Lines are read correctly on terminals of any size, which may change at any time.
func TestTerminalSizes(t *testing.T) {
	for _, size := range [][2]uint16{{1, 1}, {1, 2}, {2, 3}, {1, 1000}, {65535, 65535}} {
		e, _, keys := newTestEditor(t)
		e.resize(24, 80)
		go func() {
			_, _ = io.WriteString(keys, "a long line with größe and 漢字, ")
			e.resize(size[0], size[1])
			_, _ = io.WriteString(e.terminal, strings.Repeat("log ", 30)+"\n")
			_, _ = io.WriteString(keys, "x.al\t\x02\x02!\r")
		}()
		if line, err := e.next(false); line != "a long line with größe and 漢字, x.alp!ha" || err != nil {
			t.Errorf("size %v: %q, %v", size, line, err)
		}
	}
}
