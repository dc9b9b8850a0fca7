package runtime

// Event is something that a run did, as a [Stream] and [Process.Events] tell of it: a
// StdoutEvent, StderrEvent, LogEvent, CallEvent, DenialEvent or, last of all, an ExitEvent.
type Event interface{ event() }

// StdoutEvent is a piece of what the run has printed to its standard output, cut where
// it happened to be read. On a terminal, it is all that is shown.
type StdoutEvent struct {
	Data []byte // valid until the next event is asked for
}

// StderrEvent is a piece of what the run has printed to its standard error.
type StderrEvent struct {
	Data []byte // valid until the next event is asked for
}

// LogEvent is a line that a snippet has printed, as Evaluation.Logs has it.
type LogEvent struct{ Log Log }

// CallEvent is a call of a host function that is over, or that the run's end has cut off.
type CallEvent struct{ Call Call }

// DenialEvent is something that the run's permissions have kept it from, when it is
// known for the first time: its Count is 1. What Result.Denials has no room for is not
// told here either. What the kernel's audit or the run's last words tell
// comes as late as it is known: mostly just before the end.
type DenialEvent struct{ Denial Denial }

// ExitEvent is the end of the run, and of the events. It also ends a run that never
// began.
type ExitEvent struct {
	Result     *Result     // without output, which has gone by
	Evaluation *Evaluation // in place of a Result, where a snippet was evaluated

	// Err is that of Run, Evaluate or Process.Wait. There is a Result or an Evaluation
	// beside it if the run was canceled.
	Err error
}

func (StdoutEvent) event() {}
func (StderrEvent) event() {}
func (LogEvent) event()    {}
func (CallEvent) event()   {}
func (DenialEvent) event() {}
func (ExitEvent) event()   {}
