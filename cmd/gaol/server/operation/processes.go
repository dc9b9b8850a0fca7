package operation

import (
	"net/http"

	"gaol/cmd/gaol/server/service"
)

// maxStdinBody bounds the body of a request that writes to a process, in bytes: JSON may need six
// for one.
const maxStdinBody = 8 << 20

func processes() []*Operation {
	const all, one = "/v1/sandboxes/{id}/processes", "/v1/sandboxes/{id}/processes/{process}"
	return []*Operation{
		ofSandbox(Operation{
			Name: "spawn", Method: http.MethodPost, Path: all, Status: http.StatusCreated, unawaited: true,
			Summary: "Start a process that lives on",
			Doc:     "Starts a process with pipes or a terminal. It ends with its sandbox at the latest, and counts as a run for its whole life.",
		}, (*service.Sandbox).Spawn),
		ofSandbox(Operation{
			Name: "listProcesses", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the processes, the oldest first",
			Doc:     "Lists processes, including recently ended ones.",
		}, (*service.Sandbox).ListProcesses),
		ofPart(Operation{
			Name: "getProcess", Method: http.MethodGet, Path: one, Query: true,
			Summary: "Describe a process",
			Doc:     "Describes the process: whether it is active, its usage and, after its end, its result.",
		}, (*service.Sandbox).Process, (*service.Process).Get),
		ofPart(Operation{
			Name: "waitProcess", Method: http.MethodGet, Path: one + "/wait", Query: true, unawaited: true,
			Summary: "Wait until a process has ended",
			Doc:     "Returns when the process has ended, or after the timeout.",
		}, (*service.Sandbox).Process, (*service.Process).Wait),
		ofPart(Operation{
			Name: "deleteProcess", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "Kill a process if it is active, and forget it",
			Doc:     "Kills the process and its descendants, and forgets its result.",
		}, (*service.Sandbox).Process, (*service.Process).Delete),
		ofPart(Operation{
			Name: "signalProcess", Method: http.MethodPost, Path: one + "/signal",
			Summary: "Send a signal to a process",
			Doc:     "Sends a signal to the process, or to its process group.",
		}, (*service.Sandbox).Process, (*service.Process).Signal),
		ofPart(Operation{
			Name: "resizeProcess", Method: http.MethodPost, Path: one + "/resize",
			Summary: "Change the size of a process's terminal",
			Doc:     "Changes the size of the terminal. The foreground processes get SIGWINCH.",
		}, (*service.Sandbox).Process, (*service.Process).Resize),
		ofPart(Operation{
			Name: "writeProcess", Method: http.MethodPost, Path: one + "/stdin", MaxBody: maxStdinBody, unawaited: true,
			Summary: "Write to a process's standard input, or close it",
			Doc:     "Writes to standard input and waits until the process has room for it.",
		}, (*service.Sandbox).Process, (*service.Process).WriteStdin),
		ofPart(Operation{
			Name: "followProcess", Method: http.MethodGet, Path: one + "/events", Query: true, Events: processEvents, EventsOnly: true, unawaited: true,
			Summary: "Follow a process's output and other events",
			Doc:     "Streams output and other events. Last-Event-ID continues after an event; a gap event means that some have been dropped.",
		}, (*service.Sandbox).Process, (*service.Process).Follow),
	}
}

func contexts() []*Operation {
	const all, one = "/v1/sandboxes/{id}/contexts", "/v1/sandboxes/{id}/contexts/{context}"
	return []*Operation{
		ofSandbox(Operation{
			Name: "createContext", Method: http.MethodPost, Path: all, Status: http.StatusCreated, unawaited: true,
			Summary: "Create a context, which keeps the declarations of its cells",
			Doc:     "Starts a Node process that keeps the declarations of its cells until it is deleted, idle for some time, or exits.",
		}, (*service.Sandbox).NewContext),
		ofSandbox(Operation{
			Name: "listContexts", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the contexts, the oldest first",
			Doc:     "Lists contexts, including recently ended ones.",
		}, (*service.Sandbox).ListContexts),
		ofPart(Operation{
			Name: "getContext", Method: http.MethodGet, Path: one, Query: true,
			Summary: "Describe a context",
			Doc:     "Describes the context: whether it is active, or why it has ended.",
		}, (*service.Sandbox).Context, (*service.Context).Get),
		ofPart(Operation{
			Name: "deleteContext", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "End a context, and forget it",
			Doc:     "Ends the context and cancels its current cell.",
		}, (*service.Sandbox).Context, (*service.Context).Delete),
		ofPart(Operation{
			Name: "interruptContext", Method: http.MethodPost, Path: one + "/interrupt",
			Summary: "Interrupt the current cell and waiting ones",
			Doc:     "Interrupts the current cell. Mostly the context survives.",
		}, (*service.Sandbox).Context, (*service.Context).Interrupt),
		ofPart(Operation{
			Name: "completeInContext", Method: http.MethodPost, Path: one + "/complete",
			Summary: "List the names that can complete a line of code",
			Doc:     "Lists names that can complete the last name of a line of code. It calls no code of the guest.",
		}, (*service.Sandbox).Context, (*service.Context).Complete),
		ofPart(Operation{
			Name: "evaluateCell", Method: http.MethodPost, Path: one + "/cells", Events: cellEvents,
			Summary: "Evaluate a cell after the earlier ones",
			Doc:     "Evaluates code that sees the top-level declarations of earlier cells. Cells are evaluated one after another." + cancelText,
		}, (*service.Sandbox).Context, (*service.Context).Evaluate),
	}
}
