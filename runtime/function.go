package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Function is a function of the host's that guest code can call: a value of
// Options.Bindings or EvaluateOptions.Globals, by itself or inside a map[string]any.
//
// In the guest, api.get(1) looks like any function: the call stops that guest until the
// answer is there. await on it does no harm, and api.get.async(1) returns a promise, so
// that many calls go on at once. callBinding("api.get", 1) is the same by name. An error
// is thrown in the guest. Only a program's main thread has the functions, not its Workers.
//
// Who may call a function is any code of the guest, with any arguments, at any time while
// the run lasts: it is to check them as it would a stranger's request.
type Function struct {
	// Call is called with the arguments as a JSON array of at most CallLimits.Arguments
	// bytes: bytes in it are text in base64, dates are text as RFC 3339 has it. ctx ends with
	// the run, or after CallLimits.Timeout. Several calls may go on at once. Whoever
	// returns later than ctx ends is not waited for, but for 200 ms at the end of the run
	// if the call is as young. None begins after that.
	//
	// The result may be what encoding/json can write: at most CallLimits.Result bytes.
	// []byte and time.Time in it are a Uint8Array and a Date in the guest. Of an error the
	// guest sees the text and, of a *CallError, the code. A panic becomes an error, too,
	// of which the guest sees no more than that.
	Call func(ctx context.Context, args json.RawMessage) (any, error)

	// Description and Schema are for prompts: what the function is for, and the JSON
	// Schema of its arguments as an array. gaol itself has no use for them.
	Description string
	Schema      json.RawMessage
}

// CallError is an error that a guest sees with a code, as that of Node's own errors.
type CallError struct {
	Code    string // such as "ENOENT"
	Message string
}

// Error is the message.
func (e *CallError) Error() string { return e.Message }

// Codes of errors that guests see of calls that reach no function, or whose answer
// can't be given.
const (
	CodeManyCalls = "ERR_TOO_MANY_CALLS" // MaxCalls is used up, or too many go on at once
	CodeArguments = "ERR_ARGUMENTS"      // the arguments are not what a typed function takes
	CodeTimeout   = "ERR_CALL_TIMEOUT"   // CallLimits.Timeout passed
	CodeResult    = "ERR_RESULT"         // the result is too large, or nothing that JSON can say
	CodePanic     = "ERR_HOST_PANIC"     // the function panicked
	CodeNoCell    = "ERR_NO_CELL"        // a context called it between two cells
)

// CallLimits bound what a run may ask of host functions. A zero field takes its
// default; a negative one is an error.
type CallLimits struct {
	Calls      int           // of one run, answered or not; default 100,000; with Evaluate 50
	Concurrent int           // functions that one run has going on the host at once, at most 1,024; default 16
	Arguments  int64         // bytes of the JSON of one call's arguments; default 1 MiB
	Result     int64         // bytes of the JSON of one answer; default 4 MiB
	Timeout    time.Duration // wall-clock time of one call, its turn included; default 30 s
}

var defaultCalls = CallLimits{Calls: 100_000, Concurrent: 16, Arguments: 1 << 20, Result: 4 << 20, Timeout: 30 * time.Second}

// settle checks the limits and fills in what is not given.
func (l CallLimits) settle(d CallLimits) (CallLimits, error) {
	if l.Calls < 0 || l.Concurrent < 0 || l.Arguments < 0 || l.Result < 0 || l.Timeout < 0 {
		return l, fmt.Errorf("%+v has a negative field", l)
	}
	l = CallLimits{
		cmp.Or(l.Calls, d.Calls), cmp.Or(l.Concurrent, d.Concurrent), cmp.Or(l.Arguments, d.Arguments),
		cmp.Or(l.Result, d.Result), cmp.Or(l.Timeout, d.Timeout),
	}
	const most = 1 << 30 // of what a frame can have
	if l.Concurrent > mostPending || l.Arguments > most || l.Result > most {
		return l, fmt.Errorf("%+v: at most %d calls at once and %d bytes", l, mostPending, most)
	}
	return l, nil
}
