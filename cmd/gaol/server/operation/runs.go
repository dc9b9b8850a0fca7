package operation

import (
	"context"
	"net/http"
	"reflect"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
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

// batchRuns are the operations of batch runs.
func batchRuns() []*Operation {
	const all, one = "/v1/runs", "/v1/runs/{key}"
	return []*Operation{
		ofService(Operation{
			Name: Submit, Method: http.MethodPost, Path: all, Status: http.StatusAccepted,
			Summary: "Submit a run, which is made once it is its turn",
			Doc:     "Queues a program or a command for a new sandbox. The header Idempotency-Key names the batch run: a repetition of the request returns its state, and another request with the same key is refused. It is begun again if its machine is lost. Its result is kept for an hour. outputBytes and valueBytes are at most 256 KiB and 1 MiB, and mounts are refused. With the headers Idempotency-Key and Prefer: respond-async, /v1/run and /v1/command do the same.",
		}, func(s *service.Service, ctx context.Context, c *Call, in *requestjson.SubmitRequest) (*resultjson.BatchRun, error) {
			return s.Batch.Submit(ctx, c.Tenant, in)
		}),
		ofService(Operation{
			Name: "getBatchRun", Method: http.MethodGet, Path: one, Query: true,
			Summary: "Describe a batch run",
			Doc:     "Describes your batch run: its state, and its result once it is done.",
		}, func(s *service.Service, ctx context.Context, c *Call, in *requestjson.InBatch) (*resultjson.BatchRun, error) {
			return s.Batch.Get(ctx, c.Tenant, in.Key)
		}),
		ofService(Operation{
			Name: "waitBatchRun", Method: http.MethodGet, Path: one + "/wait", Query: true, unawaited: true,
			Summary: "Wait until a batch run is done",
			Doc:     "Returns when the batch run is done, or after the timeout.",
		}, (*service.Service).WaitBatchRun),
		ofService(Operation{
			Name: "followBatchRun", Method: http.MethodGet, Path: one + "/events", Query: true, EventsOnly: true, unawaited: true,
			Events:  []EventType{{service.EventState, resultjson.BatchRun{}, "The batch run, first as it is, and then each time that its state has changed. The last one is done."}},
			Summary: "Follow the state of a batch run",
			Doc:     "Streams the states of the batch run until it is done.",
		}, (*service.Service).FollowBatchRun),
		ofService(Operation{
			Name: "cancelBatchRun", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "Cancel a batch run",
			Doc:     "Ends the batch run, whose result then has the cause canceled, unless it is done.",
		}, func(s *service.Service, ctx context.Context, c *Call, in *requestjson.InBatch) (*resultjson.BatchRun, error) {
			return s.Batch.Cancel(ctx, c.Tenant, in.Key)
		}),
	}
}

// Submit is the name of the operation that submits a batch run.
const Submit = "submitRun"

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
	{service.EventDenial, runtime.Denial{}, "An operation that the permissions denied, or a limit that was reached, when it occurs for the first time."},
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
	buildEvents    = []EventType{
		outputEvents[0],
		{service.EventResult, resultjson.ImageInfo{}, "The last event: the object of the other response."},
		{service.EventError, nil, "The last event, if a step or the server failed, or it was canceled."},
	}
	processEvents = append([]EventType{
		{service.EventGap, resultjson.Gap{}, "Events that are gone, because the process printed more than is kept."},
		{service.EventResult, runtime.Result{}, "The last event: how the process ended, without output."},
	}, outputEvents...)
	cellEvents = []EventType{
		logEvent,
		{service.EventResult, runtime.Evaluation{}, "The last event: the object of the other response."},
		{service.EventError, nil, "The last event, if the server could not evaluate the cell, or it was canceled."},
	}
)

// SnippetPath is the path of snippets. Unlike the others, it may be used by web pages of other origins and
// by callers without a token, if the settings allow it.
const SnippetPath = "/api/sandbox"

// maxSnippetBody has room for the largest snippet with each byte written as \u0000.
const maxSnippetBody = 6*snippets.MaxBytes + 64<<10

func snippetRuns() []*Operation {
	return []*Operation{
		ofService(Operation{
			Name: "describeSnippets", Method: http.MethodGet, Path: SnippetPath, Query: true, unawaited: true,
			Summary: "Describe the snippets that the server runs",
			Doc:     "Lists adapters, permission presets and limits.",
		}, (*service.Service).DescribeSnippets),
		ofService(Operation{
			Name: "runSnippet", Method: http.MethodPost, Path: SnippetPath, MaxBody: maxSnippetBody,
			// As in the API that this path is compatible with.
			BadInput: http.StatusBadRequest,
			Output:   reflect.TypeFor[snippets.Output](), Brief: func(out any) any { return out.(*resultjson.SnippetResult).Output },
			Events: []EventType{
				{service.EventLog, resultjson.SnippetLog{}, "A line that the snippet printed."},
				{service.EventResult, resultjson.SnippetResult{}, "The last event: the object of the other response, with more about the run."},
				{service.EventError, nil, "The last event, if the server could not run the snippet."},
			},
			Summary: "Run a snippet and return its output",
			Doc:     "Runs one file or several that import each other in a new sandbox, and returns its log, the state of its framework, and its errors. A snippet that fails, or breaks a rule for its files, returns a result, too. With Accept: text/event-stream the response is a stream of events: lines as they arrive, and then the result with more about the run." + cancelText,
		}, (*service.Service).RunSnippet),
	}
}
