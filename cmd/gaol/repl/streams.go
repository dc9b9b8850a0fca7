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

// readLines reads lines if standard input is not a terminal. The function that it returns waits for one, or for the end of
// ctx.
func readLines(ctx context.Context, from io.Reader) func(bool) (string, error) {
	scanner := bufio.NewScanner(report.Reader(ctx, from))
	scanner.Buffer(nil, maxLine)
	return func(bool) (string, error) {
		if scanner.Scan() {
			return scanner.Text(), nil
		}
		switch err := scanner.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return "", fmt.Errorf("read standard input: a line of more than %d bytes", maxLine)
		case err != nil:
			return "", fmt.Errorf("read standard input: %w", err)
		}
		return "", io.EOF
	}
}

// output is standard output. A failure to write to it cancels the session.
type output struct {
	to     io.Writer
	cancel context.CancelCauseFunc
}

// Write implements [io.Writer].
func (o output) Write(b []byte) (int, error) {
	if err := report.Stdout(o.to, string(b)); err != nil {
		o.cancel(err)
		return 0, err
	}
	return len(b), nil
}

// screen shows the output of cells. A failure to write to standard output cancels the session.
type screen struct {
	stdout, stderr io.Writer

	// terminal means that both are the user's terminal. Otherwise other programs read the output, which is not
	// sanitized.
	terminal bool
}

// print prints a line of the guest.
func (s *screen) print(to io.Writer, text string, colors bool) {
	if s.terminal {
		text = report.Sanitize(text, colors)
	}
	fmt.Fprintln(to, text)
}

// log prints to the stream that Node's console would use.
func (s *screen) log(l runtime.Log) {
	switch l.Level {
	case runtime.LogWarn, runtime.LogError, runtime.LogStderr:
		s.print(s.stderr, l.Text, false)
	default:
		s.print(s.stdout, l.Text, false)
	}
}

// value omits undefined, which is the value of most lines, for programs.
func (s *screen) value(text string) {
	if s.terminal || text != "undefined" {
		s.print(s.stdout, text, true)
	}
}

func (s *screen) note(text string) {
	if s.terminal {
		fmt.Fprintln(s.stdout, text)
	} else {
		report.Notes(s.stderr, text)
	}
}

// failure omits the frame if the code has one line only.
func (s *screen) failure(e *runtime.GuestError, code string) {
	shown := *e
	if !strings.Contains(code, "\n") {
		shown.Frame = ""
	}
	text := report.ErrorText(&shown)
	// Ctrl-C is not an error of the code. The second sentence of the message reports whether the
	// variables were lost.
	if s.terminal && e.Name == "CanceledError" && e.Stack == "" {
		_, lost, _ := strings.Cut(e.Message, ". ")
		text = strings.TrimSpace("Interrupted. " + lost)
	} else if s.terminal {
		text = "Uncaught " + text
	}
	s.print(s.stderr, text, false)
}
