package repl

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

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

	terminal *term.Terminal

	mu     sync.Mutex
	failed error
}

const (
	promptFirst     = "> "
	promptContinued = "... "
)

func newLineEditor(ctx context.Context, in io.Reader, out io.Writer, past *history) *lineEditor {
	e := &lineEditor{ctx: ctx, keyboard: newKeyboard(ctx, in), out: out, history: past}
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keyboard, e}, promptFirst)
	e.terminal.History, e.terminal.AutoCompleteCallback = past, e.completeLine
	e.terminal.SetBracketedPasteMode(true)
	return e
}

func (e *lineEditor) close() { e.terminal.SetBracketedPasteMode(false) }

func (e *lineEditor) resize(rows, cols uint16) {
	_ = e.terminal.SetSize(int(cols), int(rows)) // fails only if writing does, which err reports
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
	e.terminal.SetPrompt(promptFirst)
	if continued {
		e.terminal.SetPrompt(promptContinued)
	}
	e.history.beginLine(continued)
	line, err := e.terminal.ReadLine()
	switch {
	case e.keyboard.interrupted:
		e.history.dropLine()
		return "", errAbandoned
	case errors.Is(err, io.EOF):
		e.printLine("")
	case err == nil, errors.Is(err, term.ErrPasteIndicator):
		return e.history.expand(line), nil
	}
	return "", err
}

// printLine prints where the cursor is.
func (e *lineEditor) printLine(text string) {
	_, _ = e.Write([]byte(text + "\r\n")) // err reports failures
}

// show prints above the line that is being typed. err reports failures.
func (e *lineEditor) show(text string) { _, _ = e.terminal.Write([]byte(text + "\n")) }

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
	interrupt := func() { cancel() }
	e.keyboard.onInterrupt.Store(&interrupt)
	return ctx, func() {
		e.keyboard.onInterrupt.Store(nil)
		cancel()
	}
}

const ctrlC = 0x03

// abandonKeys replace the typed line by ^C: the end of the line, and all before it. The ctrlC that follows
// becomes Enter. A term.Terminal that gets a ctrlC itself would return it again for each line.
const abandonKeys = "\x05\x15^C"

// keyboard buffers the keys that the user presses. It reads before its reader asks, so
// that Ctrl-C is noticed while a cell runs.
type keyboard struct {
	ctx         context.Context
	keys        chan byte
	err         error                  // why there will be no more keys; set before keys is closed
	onInterrupt atomic.Pointer[func()] // called for Ctrl-C; nil: it abandons the typed line
	interrupted bool                   // the last line that the reader got was abandoned
}

// maxPending bounds the buffer. Like a terminal's own line discipline, keyboard drops
// further input.
const maxPending = 1 << 20

func newKeyboard(ctx context.Context, from io.Reader) *keyboard {
	k := &keyboard{ctx: ctx, keys: make(chan byte, maxPending)}
	go k.readAll(from) // not waited for: a Read may block forever
	return k
}

func (k *keyboard) readAll(from io.Reader) {
	defer close(k.keys)
	for buf := make([]byte, 4096); k.err == nil; {
		var n int
		n, k.err = from.Read(buf)
		for _, key := range buf[:n] {
			k.press(key)
		}
	}
}

// press keeps a key for Read. While a cell runs, Ctrl-C interrupts it and discards the
// keys before it, as a terminal's line discipline does.
func (k *keyboard) press(key byte) {
	interrupt := k.onInterrupt.Load()
	if key == ctrlC && interrupt != nil {
		(*interrupt)()
		for range len(k.keys) {
			k.next()
		}
		return
	}
	keys := []byte{key}
	if key == ctrlC {
		keys = append([]byte(abandonKeys), ctrlC)
	}
	for _, key := range keys {
		select {
		case k.keys <- key:
		default:
		}
	}
}

// next returns a buffered key, if there is one.
func (k *keyboard) next() (key byte, ok bool) {
	select {
	case key, ok = <-k.keys:
	default:
	}
	return key, ok
}

// Read returns buffered keys up to the first Enter, or Ctrl-C, which it replaces by Enter, or waits for some.
// It ends with Enter because interrupted is about one line.
func (k *keyboard) Read(b []byte) (n int, err error) {
	var ok bool
	k.interrupted = false
	select {
	case <-k.ctx.Done():
		return 0, context.Cause(k.ctx)
	case b[0], ok = <-k.keys:
	}
	if !ok {
		return 0, k.err
	}
	for n = 1; ok && n < len(b) && b[n-1] != ctrlC && b[n-1] != '\r'; {
		if b[n], ok = k.next(); ok {
			n++
		}
	}
	if k.interrupted = b[n-1] == ctrlC; k.interrupted {
		b[n-1] = '\r'
	}
	return n, nil
}
