package repl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gaol/cmd/gaol/report"
	"gaol/runtime"
)

// lineReader is the input if standard input is not a terminal.
type lineReader struct {
	ctx   context.Context
	lines chan string
	err   error // why there are no more lines; set before lines is closed
}

func newLineReader(ctx context.Context, from io.Reader) *lineReader {
	l := &lineReader{ctx: ctx, lines: make(chan string)}
	go l.read(from) // not waited for: a Read may block forever
	return l
}

func (l *lineReader) read(from io.Reader) {
	defer close(l.lines)
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		select {
		case l.lines <- scanner.Text():
		case <-l.ctx.Done():
			return
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		l.err = fmt.Errorf("read standard input: a line of more than %d bytes", maxLine)
	case err != nil:
		l.err = fmt.Errorf("read standard input: %w", err)
	default:
		l.err = io.EOF
	}
}

func (l *lineReader) next(bool) (string, error) {
	select {
	case <-l.ctx.Done():
		return "", context.Cause(l.ctx)
	case line, ok := <-l.lines:
		if !ok {
			return "", l.err
		}
		return line, nil
	}
}

// plainScreen is the screen if standard input is not a terminal. It does not sanitize:
// other programs read its output.
type plainScreen struct {
	stdout, stderr io.Writer
	failed         error
}

// log writes to the stream that Node's console would use.
func (p *plainScreen) log(l runtime.Log) {
	switch l.Level {
	case runtime.LogWarn, runtime.LogError, runtime.LogStderr:
		fmt.Fprintln(p.stderr, l.Text)
	default:
		p.print(l.Text)
	}
}

// value omits undefined, which is the value of most lines.
func (p *plainScreen) value(text string) {
	if text != "undefined" {
		p.print(text)
	}
}

func (p *plainScreen) print(text string) {
	if err := report.Stdout(p.stdout, text+"\n"); err != nil && p.failed == nil {
		p.failed = err
	}
}

func (p *plainScreen) failure(e *runtime.GuestError, code string) {
	fmt.Fprintln(p.stderr, failureText(e, code))
}

func (p *plainScreen) note(text string) { report.Notes(p.stderr, text) }

func (p *plainScreen) err() error { return p.failed }

// failureText omits the frame if the code has one line only.
func failureText(e *runtime.GuestError, code string) string {
	shown := *e
	if !strings.Contains(code, "\n") {
		shown.Frame = ""
	}
	return report.ErrorText(&shown)
}
