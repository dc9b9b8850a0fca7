package runtime

// Event is something that a run did, as [Stream] and [Process.Events] report it: a
// StdoutEvent, StderrEvent, LogEvent, CallEvent, DenialEvent or, as the last one, an
// ExitEvent.
type Event interface{ event() }

// StdoutEvent is a piece of the run's standard output. Pieces end at arbitrary bytes. On a
// terminal it is all that the terminal shows.
type StdoutEvent struct {
	Data []byte // valid until the next event is requested
}

// StderrEvent is a piece of the run's standard error.
type StderrEvent struct {
	Data []byte // valid until the next event is requested
}

// LogEvent is a line that a snippet printed, as in Evaluation.Logs.
type LogEvent struct{ Log Log }

// CallEvent is a call of a host function that has returned, or that the run's end has cut
// off.
type CallEvent struct{ Call Call }

// DenialEvent is an operation that the run's permissions denied, when it occurs for the first
// time: its Count is 1. It is not sent for denials that Result.Denials has no room for. Those
// from the kernel's audit log or from standard error arrive as late as they become known,
// mostly just before the end.
type DenialEvent struct{ Denial Denial }

// ExitEvent is the end of the run, and of its events. A run that could not begin has one,
// too.
type ExitEvent struct {
	Result     *Result     // without output, which the events have
	Evaluation *Evaluation // instead of a Result, if a snippet was evaluated

	// Err is the error of Run, Evaluate or Process.Wait. If the run was canceled, there is a
	// Result or an Evaluation beside it.
	Err error
}

func (StdoutEvent) event() {}
func (StderrEvent) event() {}
func (LogEvent) event()    {}
func (CallEvent) event()   {}
func (DenialEvent) event() {}
func (ExitEvent) event()   {}
