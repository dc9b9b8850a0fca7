package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gaol/runtime"
)

// lineReader takes lines from what is no terminal.
type lineReader struct {
	ctx   context.Context
	lines chan string
	err   error // why there are no more, once lines is closed
}

func newLineReader(ctx context.Context, from io.Reader) *lineReader {
	l := &lineReader{ctx: ctx, lines: make(chan string)}
	go l.read(from) // not waited for: a Read may block for ever
	return l
}

func (l *lineReader) read(from io.Reader) {
	defer close(l.lines)
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, maxCell)
	for scanner.Scan() {
		select {
		case l.lines <- scanner.Text():
		case <-l.ctx.Done():
			return
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		l.err = fmt.Errorf("read standard input: a line of more than %d bytes", maxCell)
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

// pipes are a screen that nobody looks at: what is printed goes through as it is.
type pipes struct {
	app    *app
	failed error
}

func (p *pipes) log(l runtime.Log) {
	switch l.Level {
	case runtime.LogWarn, runtime.LogError, runtime.LogStderr:
		fmt.Fprintln(p.app.stderr, l.Text)
	default:
		p.print(l.Text)
	}
}

// value leaves out that there is none: most lines have none.
func (p *pipes) value(text string) {
	if text != "undefined" {
		p.print(text)
	}
}

func (p *pipes) print(text string) {
	if _, err := fmt.Fprintln(p.app.stdout, text); err != nil && p.failed == nil {
		p.failed = newOutputError("standard output", err)
	}
}

func (p *pipes) failure(e *runtime.GuestError, code string) {
	fmt.Fprintln(p.app.stderr, failureText(e, code))
}

func (p *pipes) note(text string) { fmt.Fprintln(p.app.stderr, "gaol: "+text) }

func (p *pipes) during(ctx context.Context, evaluate func(context.Context)) { evaluate(ctx) }

func (p *pipes) persists() bool { return false }

func (p *pipes) err() error { return p.failed }

// failureText leaves out the lines around the place where there is one line alone.
func failureText(e *runtime.GuestError, code string) string {
	shown := *e
	if !strings.Contains(code, "\n") {
		shown.Frame = ""
	}
	return errorLines(&shown)
}
