package repl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

// runOnTerminal evaluates the lines that the user types on a terminal.
func (s *session) runOnTerminal(ctx context.Context) error {
	tty, err := report.OpenTerminal(s.options.Stdin)
	if err != nil {
		return err
	}
	past := &history{}
	if !s.options.NoHistory {
		if past, err = openHistory(); err != nil {
			report.Notes(s.options.Stderr, "the history is not available: "+report.OneLine(err.Error()))
		}
		defer past.close()
	}
	restore, err := tty.MakeRaw()
	if err != nil {
		return err
	}
	defer restore()
	e := newLineEditor(ctx, tty, s.options.Stdout, past)
	defer e.close()
	defer tty.Watch(e.resize, restore)()
	if os.Getenv("NO_COLOR") == "" {
		s.cell.Form = runtime.ResultColors
	}
	s.context.OnLog, s.screen, s.interruptible, e.complete = e.log, e, e.interruptible, s.complete
	e.note(s.options.Welcome)
	return s.run(ctx, e)
}

// lineEditor is the input and the screen of a session on a terminal in raw mode. What
// the guest prints while the user types appears above the line.
type lineEditor struct {
	ctx      context.Context
	keyboard *keyboard
	history  *history
	complete func(ctx context.Context, line string) (prefix string, names []string)
	out      io.Writer

	mu         sync.Mutex
	failed     error
	terminal   *term.Terminal // replaced when Ctrl-C abandons a line
	rows, cols int            // zeros: not known
}

const (
	promptFirst     = "> "
	promptContinued = "... "
)

func newLineEditor(ctx context.Context, in io.Reader, out io.Writer, past *history) *lineEditor {
	e := &lineEditor{ctx: ctx, keyboard: newKeyboard(ctx, in), out: out, history: past}
	e.clear()
	e.terminal.SetBracketedPasteMode(true)
	return e
}

// clear starts with an empty line, in a new term.Terminal: an old one cannot discard the
// typed line.
func (e *lineEditor) clear() {
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keyboard, e}, promptFirst)
	t.History = e.history
	t.AutoCompleteCallback = e.completeLine
	e.mu.Lock()
	e.terminal = t
	rows, cols := e.rows, e.cols
	e.mu.Unlock()
	if rows > 0 {
		_ = t.SetSize(cols, rows) // fails only if writing does, which err reports
	}
}

// current returns the terminal without holding the lock, which its methods may need to write.
func (e *lineEditor) current() *term.Terminal {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.terminal
}

func (e *lineEditor) close() { e.current().SetBracketedPasteMode(false) }

func (e *lineEditor) resize(rows, cols uint16) {
	e.mu.Lock()
	e.rows, e.cols = int(rows), int(cols)
	e.mu.Unlock()
	_ = e.current().SetSize(int(cols), int(rows)) // fails only if writing does
}

// Write writes to the screen. The term.Terminal calls it.
func (e *lineEditor) Write(b []byte) (int, error) {
	if err := report.Stdout(e.out, string(b)); err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.failed = err
		return 0, err
	}
	return len(b), nil
}

// next returns the typed or pasted line, with the line feeds of a recalled entry.
func (e *lineEditor) next(continued bool) (string, error) {
	t := e.current()
	t.SetPrompt(promptFirst)
	if continued {
		t.SetPrompt(promptContinued)
	}
	e.history.beginLine(continued)
	line, err := t.ReadLine()
	switch {
	case err == nil, errors.Is(err, term.ErrPasteIndicator):
		return e.history.expand(line), nil
	case errors.Is(err, io.EOF) && e.keyboard.wasInterrupted(): // Terminal returns EOF for Ctrl-C, too
		e.printLine("^C")
		e.clear()
		return "", errAbandoned
	case errors.Is(err, io.EOF):
		e.printLine("")
	}
	return "", err
}

// printLine prints where the cursor is.
func (e *lineEditor) printLine(text string) {
	_, _ = e.Write([]byte(text + "\r\n")) // err reports failures
}

// show prints above the line that is being typed.
func (e *lineEditor) show(text string) { _, _ = e.current().Write([]byte(text + "\n")) }

func (e *lineEditor) log(l runtime.Log) { e.show(report.Sanitize(l.Text, false)) }

func (e *lineEditor) value(text string) { e.show(report.Sanitize(text, true)) }

func (e *lineEditor) note(text string) { e.show(text) }

func (e *lineEditor) failure(failed *runtime.GuestError, code string) {
	// Ctrl-C is not an error of the code. The second sentence of the message reports whether the
	// variables were lost.
	if failed.Name == "CanceledError" && failed.Stack == "" {
		_, lost, _ := strings.Cut(failed.Message, ". ")
		e.show(strings.TrimSpace("Interrupted. " + lost))
		return
	}
	e.show("Uncaught " + report.Sanitize(failureText(failed, code), false))
}

func (e *lineEditor) err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// interruptible returns a context that Ctrl-C cancels. Other keys are for the next line.
func (e *lineEditor) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	e.keyboard.setInterrupt(cancel)
	return ctx, func() {
		e.keyboard.setInterrupt(nil)
		cancel()
	}
}

const ctrlC = 0x03

// keyboard buffers the keys that the user presses. It reads before its reader asks, so
// that Ctrl-C is noticed while a cell runs.
type keyboard struct {
	ctx context.Context

	mu          sync.Mutex
	changed     sync.Cond
	pending     []byte
	err         error  // why there will be no more keys
	onInterrupt func() // called for Ctrl-C; nil: Ctrl-C is a key like others
	interrupted bool   // the last key that Read returned is Ctrl-C
}

// maxPending bounds the buffer. Like a terminal's own line discipline, keyboard drops
// further input.
const maxPending = 1 << 20

func newKeyboard(ctx context.Context, from io.Reader) *keyboard {
	k := &keyboard{ctx: ctx}
	k.changed.L = &k.mu
	context.AfterFunc(ctx, func() { k.close(context.Cause(ctx)) })
	go k.readAll(from) // not waited for: a Read may block forever
	return k
}

func (k *keyboard) readAll(from io.Reader) {
	for buf := make([]byte, 4096); ; {
		n, err := from.Read(buf)
		k.buffer(buf[:n])
		if err != nil {
			k.close(err)
			return
		}
	}
}

// buffer keeps keys for Read. While a cell runs, Ctrl-C interrupts it and discards the
// keys before it, as a terminal's line discipline does.
func (k *keyboard) buffer(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.onInterrupt != nil {
		if at := bytes.LastIndexByte(b, ctrlC); at >= 0 {
			k.onInterrupt()
			k.pending, b = nil, b[at+1:]
		}
	}
	if len(k.pending)+len(b) <= maxPending {
		k.pending = append(k.pending, b...)
	}
	k.changed.Broadcast()
}

// close makes Read return err when no keys are left. The first error counts.
func (k *keyboard) close(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	k.changed.Broadcast()
}

// Read returns buffered keys up to the first Ctrl-C, or waits for some.
func (k *keyboard) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.pending) == 0 && k.err == nil {
		k.changed.Wait()
	}
	if k.ctx.Err() != nil || len(k.pending) == 0 {
		return 0, k.err
	}
	next := k.pending
	if at := bytes.IndexByte(next, ctrlC); at >= 0 {
		next = next[:at+1]
	}
	n := copy(b, next)
	k.interrupted = n > 0 && b[n-1] == ctrlC
	k.pending = k.pending[n:]
	return n, nil
}

// wasInterrupted reports whether the last key that Read returned is Ctrl-C.
func (k *keyboard) wasInterrupted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.interrupted
}

// setInterrupt makes Ctrl-C call f instead of being a key. Nil undoes that.
func (k *keyboard) setInterrupt(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onInterrupt = f
}
