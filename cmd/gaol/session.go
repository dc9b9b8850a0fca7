package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gaol/internal/snippet"
	"gaol/runtime"
)

// session is what goes on in gaol repl: input becomes cells of a context.
type session struct {
	sandbox sandbox
	context runtime.ContextOptions
	cell    runtime.EvaluateOptions
	out     screen

	denied func(*runtime.Result) []string // lines about what a failed cell was denied

	complete time.Duration // what names may take; 0: nobody asks for them

	notes notebook
	exit  int  // status of gaol
	over  bool // there is nothing to go on with
}

// input has lines.
type input interface {
	// next waits for a line; it goes on with a cell, or begins one. io.EOF is the end,
	// errAbandoned that of the cell alone.
	next(goesOn bool) (string, error)
}

var errAbandoned = errors.New("what was typed so far was abandoned")

// screen shows what comes of a cell.
type screen interface {
	log(runtime.Log)
	value(text string)
	failure(e *runtime.GuestError, code string)
	note(text string)

	// during has a cell evaluated. A person may end the context.
	during(ctx context.Context, evaluate func(context.Context))

	// persists reports whether there is somebody to go on when the context is lost.
	persists() bool

	// err is why nothing can be shown any more, if so.
	err() error
}

// work evaluates what comes until there is no more.
func (s *session) work(ctx context.Context, in input) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for !s.over {
		code, err := readCell(in)
		switch {
		case errors.Is(err, errAbandoned):
			continue
		case errors.Is(err, io.EOF):
			s.over = true
		case errors.Is(err, errLong) && s.out.persists(): // who typed it sees that it is refused
		case err != nil:
			return err
		}
		if err := s.perform(ctx, code); err != nil {
			return err
		}
	}
	return nil
}

// maxCell is more than a cell may have.
const maxCell = 1 << 20

// errLong is for lines that have become more than a cell may have, so that nobody knows where
// it ends.
var errLong = fmt.Errorf("read standard input: a cell of more than %d bytes", snippet.MaxCode)

// readCell reads lines until they are code, or can't become any.
func readCell(in input) (string, error) {
	code := ""
	for goesOn := false; ; goesOn = true {
		line, err := in.next(goesOn)
		if errors.Is(err, errAbandoned) {
			return "", err
		}
		code += line
		if err != nil {
			return strings.TrimSuffix(code, "\n"), err
		}
		if goesOn && len(code) > snippet.MaxCode {
			return code, errLong
		}
		if !runtime.Unfinished(code) {
			return code, nil
		}
		code += "\n"
	}
}

const replHelp = `.exit     ends, as Ctrl-D does
.help     shows this
Tab       completes a name, or shows those there are
Ctrl-C    abandons what is typed, or stops what runs
Up, Down  bring back earlier lines`

// perform evaluates a cell and shows what comes of it.
func (s *session) perform(ctx context.Context, code string) error {
	switch strings.TrimSpace(code) {
	case "":
		return s.out.err()
	case ".exit":
		s.over = true
		return nil
	case ".help":
		s.out.note(replHelp)
		return s.out.err()
	}
	o := s.cell
	o.OnLog = s.out.log
	var e *runtime.Evaluation
	var err error
	s.out.during(ctx, func(ctx context.Context) { e, err = s.notes.Evaluate(ctx, code, o) })
	switch {
	case e != nil: // an error beside it is that a key or a signal ended the cell
	case errors.Is(err, runtime.ErrContextEnded): // since the last cell
		e = &runtime.Evaluation{Error: &runtime.GuestError{Message: strings.TrimPrefix(err.Error(), "gaol: evaluate: ")}}
	case err != nil:
		return err
	}
	s.show(e, code)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(s.goOn(ctx, e), s.out.err())
}

// begin makes the context.
func (s *session) begin(ctx context.Context) (err error) {
	s.notes, err = s.sandbox.Context(ctx, s.context)
	return err
}

func (s *session) show(e *runtime.Evaluation, code string) {
	if e.Truncated.Logs {
		s.out.note("there were more lines")
	}
	var text string
	if e.Result != nil && json.Unmarshal(e.Result, &text) == nil {
		s.out.value(text)
	}
	if e.Error == nil || e.Error.Name == "ExitError" && s.hasExited() { // as the code wanted
		return
	}
	s.out.failure(e.Error, code)
	for _, line := range s.denied(&runtime.Result{ExitCode: 1, Denials: e.Denials[:min(len(e.Denials), mostDenied)]}) {
		s.out.note(line)
	}
	if !s.out.persists() {
		s.exit = 1
	}
}

func (s *session) hasExited() bool {
	_, ok := errors.AsType[*runtime.ExitError](s.notes.Err())
	return ok
}

// goOn sees to a context that has ended.
func (s *session) goOn(ctx context.Context, e *runtime.Evaluation) error {
	why := s.notes.Err()
	if why == nil {
		return nil
	}
	exit, byItself := errors.AsType[*runtime.ExitError](why)
	switch {
	case byItself:
		s.exit, s.over = exit.Code, true
	case s.out.persists():
		s.out.note("another context begins, without the variables")
		return s.begin(ctx)
	default:
		s.exit, s.over = evalStatus(e), true
	}
	return nil
}

// names completes a line.
func (s *session) names(ctx context.Context, line string) (prefix string, names []string) {
	ctx, cancel := context.WithTimeout(ctx, s.complete)
	defer cancel()
	prefix, names, err := s.notes.Complete(ctx, line)
	if err != nil {
		return "", nil
	}
	return prefix, names
}
