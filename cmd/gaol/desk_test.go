package main

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

// paper is a screen that a test can read.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// typing is a desk at which somebody types what is written to the pipe.
func typing(t *testing.T) (*desk, *paper, io.Writer) {
	t.Helper()
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	shown := &paper{}
	d := newDesk(t.Context(), r, shown, nil)
	d.names = func(_ context.Context, line string) (string, []string) {
		switch {
		case strings.HasSuffix(line, "."):
			return "", []string{"alpha", "beta"}
		case strings.HasSuffix(line, "al"):
			return "al", []string{"alpha", "alphabet"}
		}
		return "", nil
	}
	return d, shown, w
}

func TestDeskLines(t *testing.T) {
	d, shown, keys := typing(t)
	go func() {
		for _, some := range []string{"one\r", "tw", "o\rthree", "\x03", "four\r", "x.al\tbet\r", "x.\tbeta\r", "\ty\r", "none\t\r", "\x04"} {
			_, _ = io.WriteString(keys, some)
		}
	}()
	for i, want := range []string{"one", "two", "^C", "four", "x.alphabet", "x.beta", "  y", "none", "EOF"} {
		line, err := d.next(i > 0)
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

// An input of several lines is brought back by one key, and is the same.
func TestDeskRecalls(t *testing.T) {
	d, shown, keys := typing(t)
	go func() { _, _ = io.WriteString(keys, "f(`\r  a\r`)\r\x1b[A\r") }()
	for i, want := range []string{"f(`", "  a", "`)", "f(`\n  a\n`)"} {
		if line, err := d.next(i > 0 && i < 3); line != want || err != nil {
			t.Fatalf("%q, %v, want %q", line, err, want)
		}
	}
	if !strings.Contains(shown.String(), "> f(`␤  a␤`)") {
		t.Errorf("%q", shown.String())
	}
}

// Ctrl-C ends what runs, and what was typed while it ran is for the next line.
func TestDeskInterrupts(t *testing.T) {
	d, _, keys := typing(t)
	done := make(chan struct{})
	go d.during(t.Context(), func(ctx context.Context) {
		<-ctx.Done()
		close(done)
	})
	for k := d.keys; ; {
		k.mu.Lock()
		set := k.stop != nil
		k.mu.Unlock()
		if set {
			break
		}
	}
	go func() { _, _ = io.WriteString(keys, "dropped\x03next\r") }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not ended")
	}
	if line, err := d.next(false); line != "next" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
}

func TestDeskEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	d := newDesk(ctx, r, &paper{}, nil)
	why := errors.New("why")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if _, err := d.next(false); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space") }

// What can't be shown ends the session.
func TestDeskThatCannotShow(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	d := newDesk(t.Context(), r, fullDisk{}, nil)
	d.show("x")
	if err := d.err(); err == nil || !strings.Contains(err.Error(), "write standard output: no space") {
		t.Errorf("%v", err)
	}
}

// What a guest prints is shown harmlessly, and errors as what they are.
func TestDeskShows(t *testing.T) {
	d, shown, _ := typing(t)
	d.log(runtime.Log{Level: runtime.LogLog, Text: "a\x1b[31mb"})
	d.value("\x1b[33m5\x1b[39m\x1b[2J")
	d.failure(&runtime.GuestError{Name: "E\x07", Message: "m", Frame: "> 1 | x"}, "x")
	d.failure(&runtime.GuestError{Name: "CanceledError", Message: "the code was stopped by its host"}, "x")
	d.failure(&runtime.GuestError{Name: "CanceledError", Message: "the code was stopped by its host. It is lost"}, "x")
	want := "a\\x1b[31mb\r\n\x1b[33m5\x1b[39m\\x1b[2J\x1b[0m\r\nUncaught E\\x07: m\r\nInterrupted.\r\nInterrupted. It is lost\r\n"
	if got := strings.TrimPrefix(shown.String(), "\x1b[?2004h"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestColumns(t *testing.T) {
	for _, tc := range []struct {
		names []string
		width int
		want  string
	}{
		{[]string{"a", "bb", "c"}, 80, "a   bb  c"},
		{[]string{"a", "bb", "c"}, 8, "a   bb\nc"},
		{[]string{"a", "bb", "c"}, 1, "a\nbb\nc"},
	} {
		if got := columns(tc.names, tc.width); got != tc.want {
			t.Errorf("%v in %d: %q, want %q", tc.names, tc.width, got, tc.want)
		}
	}
	many := strings.Split(strings.Repeat("n ", mostShown+5), " ")[:mostShown+5]
	if got := columns(many, 80); !strings.HasSuffix(got, "\n... and 5 more") {
		t.Errorf("%q", got)
	}
	if got := common([]string{"größe", "größer", "grün"}); got != "gr" {
		t.Error(got)
	}
	if got := common([]string{"a", "b"}); got != "" {
		t.Error(got)
	}
}
