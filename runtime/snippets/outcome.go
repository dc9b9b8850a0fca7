package snippets

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gaol/runtime"
)

// newOutput returns the output of a snippet that has done nothing.
func newOutput() *Output {
	return &Output{Logs: []string{}, Facts: emptyObject, Derived: emptyObject, Errors: []string{}}
}

// outcome completes an output with the sandbox's evaluation of a run.
type outcome struct {
	out     *Output
	program *program
	timeout time.Duration
}

func (o outcome) add(e *runtime.Evaluation) {
	out := o.out
	out.DurationMs = float64(e.Duration.Microseconds()) / 1000
	out.TimedOut = e.Cause == runtime.CauseTimeout
	out.Denials, out.Usage = e.Denials, e.Usage
	l := logs{lines: out.Logs, position: o.program.locate} // again: e.Logs is without what V8 prints before it aborts
	for _, entry := range e.Logs {
		l.add(entry)
	}
	out.Logs = l.lines
	if e.Error != nil {
		o.addError(e)
	}
	out.addReport(e.Result, o.program.locate)
}

// addError adds the reason why a run failed. Only Cause is certain: the guest chooses the names of errors.
func (o outcome) addError(e *runtime.Evaluation) {
	switch e.Cause {
	case runtime.CauseCanceled: // Run adds the error
	case runtime.CauseTimeout:
		o.out.addError(fmt.Sprintf("wall-clock budget of %dms elapsed", o.timeout.Milliseconds()))
	case runtime.CauseMemory:
		o.out.addError(fmt.Sprintf("out of memory: a snippet has %d MiB of heap, and %d MiB in all", heap>>20, memory>>20))
	default:
		o.out.addError(o.describe(e.Error))
		if p, ok := o.program.first(e.Error.Stack); ok {
			p.Message = o.head(e.Error)
			o.out.Problems = append(o.out.Problems, p)
		}
	}
}

// ownErrors are the errors by which package runtime reports how a process ended.
var ownErrors = []string{"ExitError", "LimitError", "SignalError", "UnsettledError"}

// head returns an error's name, message and code.
func (o outcome) head(e *runtime.GuestError) string {
	if rest, ok := strings.CutPrefix(e.Message, "the code "); ok && e.Stack == "" && slices.Contains(ownErrors, e.Name) {
		return "the snippet " + rest
	}
	text := o.program.locate(strings.TrimPrefix(e.Name+": "+e.Message, ": "))
	if e.Code != "" {
		text += fmt.Sprintf(" [code: %s]", e.Code)
	}
	return text
}

// describe returns an error with the part of its stack that is in the snippet's files, and its
// causes, of which package runtime bounds the number.
func (o outcome) describe(e *runtime.GuestError) string {
	const maxFrames = 10
	var b strings.Builder
	b.WriteString(cut(o.head(e), maxErrorText/2))
	for _, frame := range o.program.frames(e.Stack, maxFrames) {
		b.WriteString("\n" + frame)
	}
	if e.Cause != nil {
		b.WriteString("\nCause: " + o.describe(e.Cause))
	}
	for _, inner := range e.Errors {
		b.WriteString("\nOne of its errors: " + o.describe(inner))
	}
	return b.String()
}
