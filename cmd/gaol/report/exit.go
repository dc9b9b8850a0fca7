package report

import "gaol/runtime"

// Exit statuses that are not the guest's own. The first three are those of
// timeout(1) and docker run.
const (
	ExitTimeout = 124
	ExitFailure = 125
	ExitMemory  = 137
	ExitSignal  = 128 // plus the signal's number
)

// Status returns gaol's exit status for a run.
func Status(res *runtime.Result) int {
	switch res.Cause {
	case runtime.CauseTimeout:
		return ExitTimeout
	case runtime.CauseMemory:
		return ExitMemory
	}
	return res.ExitCode
}

// EvaluationStatus returns gaol's exit status for an evaluation. A snippet has no exit status
// of its own: 1 is that of Node for an uncaught error.
func EvaluationStatus(e *runtime.Evaluation) int {
	code := 0
	if e.Error != nil {
		code = 1
	}
	return Status(&runtime.Result{Cause: e.Cause, ExitCode: code})
}
