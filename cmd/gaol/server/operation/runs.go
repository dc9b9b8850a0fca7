package operation

import (
	"net/http"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

const (
	resultText = " A program that fails or exceeds a limit returns a result, too: its exitCode and cause show why it ended. With Accept: text/event-stream the response is a stream of events, and the last one carries the result."
	cancelText = " Closing the connection cancels it."
)

func runs() []*Operation {
	const in = "/v1/sandboxes/{id}"
	return []*Operation{
		ofService(Operation{
			Name: "run", Method: http.MethodPost, Path: "/v1/run", Events: runEvents,
			Summary: "Run a program in a new sandbox",
			Doc:     "Runs a program in a fresh sandbox that is deleted afterwards. The value that it passes to globalThis.__return is in the result." + resultText + cancelText,
		}, (*service.Service).Run),
		ofService(Operation{
			Name: "command", Method: http.MethodPost, Path: "/v1/command", Events: runEvents,
			Summary: "Run a program of the image in a new sandbox",
			Doc:     "Runs a program of the image, such as sh or npm, in a fresh sandbox that is deleted afterwards." + resultText + cancelText,
		}, (*service.Service).Command),
		ofService(Operation{
			Name: "evaluate", Tag: "evaluate", Method: http.MethodPost, Path: "/v1/evaluate", Events: evaluateEvents,
			Summary: "Evaluate a snippet in a new sandbox",
			Doc:     "Evaluates a snippet in a fresh sandbox that is deleted afterwards. The value of its last expression is in the result." + resultText + cancelText,
		}, (*service.Service).Evaluate),
		ofSandbox(Operation{
			Name: "runIn", Method: http.MethodPost, Path: in + "/run", Events: runEvents,
			Summary: "Run a program and return its value",
			Doc:     "Runs a program and returns the value that it passes to globalThis.__return." + resultText + cancelText,
		}, (*service.Sandbox).Run),
		ofSandbox(Operation{
			Name: "execIn", Method: http.MethodPost, Path: in + "/exec", Events: runEvents,
			Summary: "Run a program without a value",
			Doc:     "Runs a program and returns its output and exit code." + resultText + cancelText,
		}, (*service.Sandbox).Exec),
		ofSandbox(Operation{
			Name: "commandIn", Method: http.MethodPost, Path: in + "/command", Events: runEvents,
			Summary: "Run a program of the image",
			Doc:     "Runs a program of the image, such as sh or npm." + resultText + cancelText,
		}, (*service.Sandbox).Command),
		ofSandbox(Operation{
			Name: "evaluateIn", Method: http.MethodPost, Path: in + "/evaluate", Events: evaluateEvents,
			Summary: "Evaluate a snippet",
			Doc:     "Evaluates a snippet in a new process. The value of its last expression is in the result." + resultText + cancelText,
		}, (*service.Sandbox).Evaluate),
	}
}

// sessions are the operations that only sessions have.
func sessions() []*Operation {
	return []*Operation{
		ofService(Operation{Name: "tool", Summary: "Call a tool of package sandboxtools, whose sandboxes end with the session"}, (*service.Service).CallTool),
		ofService(Operation{Name: "normalize", Summary: "Turn a snippet into an ES module"}, (*service.Service).Normalize),
		ofSandbox(Operation{Name: "addCommands", Summary: "Add programs that the client implements to a sandbox of the session"}, (*service.Sandbox).AddCommands),
		ofSandbox(Operation{Name: "dial", Summary: "Connect to a guest's server until both directions have ended"}, (*service.Sandbox).Dial),
	}
}

// commonEvents are the events of all runs.
var commonEvents = []EventType{
	{service.EventCall, runtime.Call{}, "A call of a host function that has returned."},
	{service.EventConnect, runtime.Connection{}, "A connection to an external host that has ended or failed."},
	{service.EventDenial, runtime.Denial{}, "An operation that the permissions denied, when it occurs for the first time."},
	{service.EventError, nil, "The last event, if the server could not run it, or it was canceled."},
}

// outputEvents are the events of programs.
var outputEvents = append([]EventType{
	{service.EventStdout, resultjson.Output{}, "A piece of standard output, or of all output on a terminal. Pieces do not end inside a character."},
	{service.EventStderr, resultjson.Output{}, "A piece of standard error."},
}, commonEvents...)

// logEvent is that of evaluations.
var logEvent = EventType{service.EventLog, runtime.Log{}, "A line that the snippet printed."}

var (
	runEvents      = append([]EventType{{service.EventResult, runtime.Result{}, "The last event: the object of the other response, without output."}}, outputEvents...)
	evaluateEvents = append([]EventType{logEvent, {service.EventResult, runtime.Evaluation{}, "The last event: the object of the other response."}}, commonEvents...)
	processEvents  = append([]EventType{
		{service.EventGap, resultjson.Gap{}, "Events that are gone, because the process printed more than is kept."},
		{service.EventResult, runtime.Result{}, "The last event: how the process ended, without output."},
	}, outputEvents...)
	cellEvents = []EventType{
		logEvent,
		{service.EventResult, runtime.Evaluation{}, "The last event: the object of the other response."},
		{service.EventError, nil, "The last event, if the server could not evaluate the cell, or it was canceled."},
	}
)
