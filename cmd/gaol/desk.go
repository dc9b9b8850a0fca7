package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"golang.org/x/term"

	"gaol/runtime"
)

// desk is a terminal at which a person types cells. It is in raw mode: all keys come
// here, and lines that the guest prints meanwhile come above what is typed.
type desk struct {
	ctx   context.Context
	keys  *keys
	past  *history
	names func(ctx context.Context, line string) (prefix string, names []string)

	mu         sync.Mutex
	out        io.Writer
	failed     error
	line       *term.Terminal // edits the line
	rows, cols int
}

const (
	promptFirst = "> "
	promptMore  = "... "
)

// newDesk takes the terminal. past may be nil.
func newDesk(ctx context.Context, in io.Reader, out io.Writer, past *history) *desk {
	if past == nil {
		past = &history{} // of this session alone
	}
	d := &desk{ctx: ctx, keys: newKeys(ctx, in), out: out, past: past}
	d.takeLine()
	d.line.SetBracketedPasteMode(true)
	return d
}

// takeLine begins with an empty line.
func (d *desk) takeLine() {
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{d.keys, (*deskWriter)(d)}, promptFirst)
	t.History = d.past
	t.AutoCompleteCallback = d.tab
	d.mu.Lock()
	d.line = t
	rows, cols := d.rows, d.cols
	d.mu.Unlock()
	if rows > 0 {
		_ = t.SetSize(cols, rows) // fails as writing does, which is known then
	}
}

// editor is what edits the line now.
func (d *desk) editor() *term.Terminal {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.line
}

// leave gives the terminal back.
func (d *desk) leave() { d.editor().SetBracketedPasteMode(false) }

func (d *desk) resize(rows, cols uint16) {
	d.mu.Lock()
	d.rows, d.cols = int(rows), int(cols)
	t := d.line
	d.mu.Unlock()
	_ = t.SetSize(int(cols), int(rows))
}

// deskWriter is a desk's screen for its editor.
type deskWriter desk

func (w *deskWriter) Write(b []byte) (int, error) {
	n, err := w.out.Write(b)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.failed = newOutputError("standard output", err)
	}
	return n, err
}

func (d *desk) next(goesOn bool) (string, error) {
	t := d.editor()
	prompt := promptFirst
	if goesOn {
		prompt = promptMore
	}
	t.SetPrompt(prompt)
	d.past.begin(goesOn)
	line, err := t.ReadLine()
	line = d.past.lineOf(line)
	switch {
	case err == nil, errors.Is(err, term.ErrPasteIndicator):
		return line, nil
	case errors.Is(err, io.EOF) && d.keys.interrupted(): // which the editor can't tell from the end
		d.print("^C")
		d.takeLine()
		return "", errAbandoned
	case errors.Is(err, io.EOF):
		d.print("")
	}
	return "", err
}

func (d *desk) print(text string) {
	// What can't be shown is seen at the next prompt: see err.
	_, _ = (*deskWriter)(d).Write([]byte(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n"))
}

// show prints above what is typed.
func (d *desk) show(text string) { _, _ = d.editor().Write([]byte(text + "\n")) }

func (d *desk) log(l runtime.Log) { d.show(harmless(l.Text, false)) }

func (d *desk) value(text string) { d.show(harmless(text, true)) }

func (d *desk) failure(e *runtime.GuestError, code string) {
	if e.Name == "CanceledError" && e.Stack == "" { // by Ctrl-C
		_, lost, _ := strings.Cut(e.Message, ". ")
		d.show(strings.TrimSpace("Interrupted. " + lost))
		return
	}
	d.show("Uncaught " + harmless(failureText(e, code), false))
}

func (d *desk) note(text string) { d.show(text) }

func (d *desk) persists() bool { return true }

func (d *desk) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// during has Ctrl-C end what is evaluated. Other keys are for the next line.
func (d *desk) during(ctx context.Context, evaluate func(context.Context)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.keys.onInterrupt(cancel)()
	evaluate(ctx)
}

const mostShown = 200 // names

// tab completes what is before the cursor.
func (d *desk) tab(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	before, after := line[:pos], line[pos:]
	insert := func(text string) (string, int, bool) { return before + text + after, pos + len(text), true }
	if strings.TrimSpace(before) == "" {
		return insert("  ")
	}
	prefix, names := d.names(d.ctx, before)
	if len(names) == 0 {
		return line, pos, true
	}
	if more := strings.TrimPrefix(common(names), prefix); more != "" {
		return insert(more)
	}
	if len(names) > 1 {
		d.show(columns(names, d.width()))
	}
	return line, pos, true
}

func (d *desk) width() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cols > 0 {
		return d.cols
	}
	return 80
}

// common is what all names begin with.
func common(names []string) string {
	prefix := names[0]
	for _, name := range names[1:] {
		for !strings.HasPrefix(name, prefix) {
			prefix = string([]rune(prefix)[:len([]rune(prefix))-1])
		}
	}
	return prefix
}

// columns lays names out.
func columns(names []string, width int) string {
	more := len(names) - mostShown
	if more > 0 {
		names = names[:mostShown]
	}
	widest := 0
	for _, name := range names {
		widest = max(widest, len([]rune(name)))
	}
	each := max(1, width/(widest+2))
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i%each == 0:
			b.WriteByte('\n')
		default:
			b.WriteString(strings.Repeat(" ", widest+2-len([]rune(names[i-1]))))
		}
		b.WriteString(name)
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n... and %d more", more)
	}
	return b.String()
}
