package repl

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"gaol/cmd/gaol/report"
	"gaol/cmd/gaol/terminal"
	"gaol/runtime"
)

// runOnTerminal evaluates what the user types on a terminal.
func (s *session) runOnTerminal(ctx context.Context) error {
	tty, err := terminal.Open(s.options.Stdin)
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

// next returns what the user typed or pasted, with the line feeds of a recalled entry.
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

func (e *lineEditor) log(l runtime.Log) { e.show(terminal.Sanitize(l.Text, false)) }

func (e *lineEditor) value(text string) { e.show(terminal.Sanitize(text, true)) }

func (e *lineEditor) note(text string) { e.show(text) }

func (e *lineEditor) failure(failed *runtime.GuestError, code string) {
	// Ctrl-C is no error of the code. After the first sentence the message says whether the
	// variables were lost.
	if failed.Name == "CanceledError" && failed.Stack == "" {
		_, lost, _ := strings.Cut(failed.Message, ". ")
		e.show(strings.TrimSpace("Interrupted. " + lost))
		return
	}
	e.show("Uncaught " + terminal.Sanitize(failureText(failed, code), false))
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
