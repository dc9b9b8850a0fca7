package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/term"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

// runOnTerminal evaluates the lines that the user types on a terminal.
func (s *session) runOnTerminal(ctx context.Context, stdout io.Writer) error {
	tty, past := report.OpenTerminal(s.options.Stdin), &history{}
	if !s.options.NoHistory {
		var err error
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
	e := newLineEditor(ctx, tty, stdout, past)
	defer e.terminal.SetBracketedPasteMode(false)
	defer tty.Watch(e.resize, restore)()
	if os.Getenv("NO_COLOR") == "" {
		s.cell.Form = runtime.ResultColors
	}
	s.screen = screen{e.terminal, e.terminal, true}
	s.context.OnLog, s.interruptible, s.keep, e.complete = s.log, e.interruptible, past.keep, s.complete
	s.note(s.options.Welcome)
	return s.run(ctx, e.next)
}

// lineEditor is the input of a session on a terminal in raw mode. Text that is written to terminal appears above the line
// that the user types.
type lineEditor struct {
	ctx      context.Context
	keyboard *keyboard
	out      io.Writer
	terminal *term.Terminal
	complete func(ctx context.Context, line string) (prefix string, names []string)
}

const (
	promptFirst     = "> "
	promptContinued = "... "
)

func newLineEditor(ctx context.Context, in io.Reader, out io.Writer, past *history) *lineEditor {
	e := &lineEditor{ctx: ctx, keyboard: &keyboard{ctx: ctx, keys: make(chan byte, maxPending)}, out: out}
	go e.keyboard.readAll(in) // not waited for: a Read may block forever
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keyboard, out}, promptFirst)
	e.terminal.History, e.terminal.AutoCompleteCallback = past, e.completeLine
	e.terminal.SetBracketedPasteMode(true)
	return e
}

func (e *lineEditor) resize(rows, cols uint16) {
	_ = e.terminal.SetSize(int(cols), int(rows)) // fails only if writing does, which the session reports
}

// next returns the typed or pasted line, with the line feeds of a recalled entry.
func (e *lineEditor) next(continued bool) (string, error) {
	e.terminal.SetPrompt(promptFirst)
	if continued {
		e.terminal.SetPrompt(promptContinued)
	}
	line, err := e.terminal.ReadLine()
	switch {
	case e.keyboard.interrupted:
		return "", errAbandoned
	case errors.Is(err, io.EOF):
		_, _ = io.WriteString(e.out, "\r\n") // the session reports failures
	case err == nil, errors.Is(err, term.ErrPasteIndicator):
		return strings.ReplaceAll(line, lineBreak, "\n"), nil
	}
	return "", err
}

// interruptible returns a context that Ctrl-C cancels. Other keys are for the next line.
func (e *lineEditor) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	e.keyboard.onInterrupt.Store(new(func() { cancel() }))
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
	if interrupt := k.onInterrupt.Load(); key == ctrlC && interrupt != nil {
		(*interrupt)()
		for len(k.keys) > 0 {
			select {
			case <-k.keys:
			default: // the reader was faster
			}
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

// Read returns one key, or waits for it: interrupted is about the last one. It replaces Ctrl-C by Enter.
func (k *keyboard) Read(b []byte) (n int, err error) {
	k.interrupted = false
	select {
	case <-k.ctx.Done():
		return 0, context.Cause(k.ctx)
	case key, ok := <-k.keys:
		if !ok {
			return 0, k.err
		}
		if k.interrupted = key == ctrlC; k.interrupted {
			key = '\r'
		}
		b[0] = key
		return 1, nil
	}
}

// maxShown is the most names that Tab lists: more would scroll the typed line out of sight.
const maxShown = 200

// completeLine completes the name before the cursor on Tab.
func (e *lineEditor) completeLine(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	before, after := line[:pos], line[pos:]
	insert := func(text string) (string, int, bool) { return before + text + after, pos + len(text), true }
	if strings.TrimSpace(before) == "" { // Tab indents, as in other editors
		return insert("  ")
	}
	prefix, names := e.complete(e.ctx, before)
	if len(names) == 0 {
		return line, pos, true
	}
	if more := strings.TrimPrefix(commonPrefix(names), prefix); more != "" {
		return insert(more)
	}
	if len(names) > 1 {
		fmt.Fprintln(e.terminal, list(names))
	}
	return line, pos, true
}

// commonPrefix returns what all names begin with. It cuts whole characters, never in one.
func commonPrefix(names []string) string {
	prefix := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, prefix) {
			_, last := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-last]
		}
	}
	return prefix
}

// list returns names as a text, which the terminal wraps.
func list(names []string) string {
	if more := len(names) - maxShown; more > 0 {
		names = append(names[:maxShown:maxShown], fmt.Sprintf("... and %d more", more))
	}
	return strings.Join(names, "  ")
}
