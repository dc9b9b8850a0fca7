package api

import "github.com/danielgtaylor/huma/v2"

// tags are the kinds of operations.
var tags = []*huma.Tag{
	{Name: "run", Description: "Programs and snippets, each in a process of its own."},
	{Name: "evaluate", Description: "Snippets as models write them, in a sandbox of their own."},
	{Name: "sandboxes", Description: "Sandboxes, which keep their files between runs."},
	{Name: "processes", Description: "Processes that may live as long as their sandbox."},
	{Name: "contexts", Description: "Contexts, which keep the declarations of their cells, as notebooks do."},
	{Name: "files", Description: "Files of a sandbox."},
	{Name: "listeners", Description: "Ports on which a sandbox listens."},
	{Name: "ports", Description: "Requests to servers of a sandbox."},
	{Name: "snippets", Description: "Examples of a framework's users."},
	{Name: "snapshots", Description: "Copies of a sandbox's folders."},
}

const (
	resultText = " A program that fails or exceeds a limit has a result, too: its exitCode and cause say why it ended. With Accept: text/event-stream the response is a stream of events, and the last one has the result."
	cancelText = " Closing the connection cancels it."
)

// descriptions describe the operations, by id.
var descriptions = map[string]string{
	"run":      "Runs a program in a fresh sandbox that is deleted afterwards. The value that it passes to globalThis.__return is in the result." + resultText + cancelText,
	"evaluate": "Evaluates a snippet in a fresh sandbox that is deleted afterwards. The value of its last expression is in the result." + resultText + cancelText,

	"runIn":      "Runs a program and returns the value that it passes to globalThis.__return." + resultText + cancelText,
	"execIn":     "Runs a program and returns its output and exit code." + resultText + cancelText,
	"commandIn":  "Runs a program of the image, such as sh or npm." + resultText + cancelText,
	"evaluateIn": "Evaluates a snippet in a process of its own. The value of its last expression is in the result." + resultText + cancelText,

	"describeSnippets": "Lists adapters, permission presets and limits.",
	"runSnippet":       "Runs one file or several that import each other in a sandbox of its own, and returns its log, the state of its framework, and its errors. A snippet that fails, or breaks a rule for its files, has a result, too. With Accept: text/event-stream the response is a stream of events: lines as they arrive, and then the result with more about the run." + cancelText,

	"listSandboxes": "Lists your sandboxes only. It does not renew them.",
	"createSandbox": "Creates a sandbox. It lives until it is deleted, not used for its idle timeout, or older than its lifetime.",
	"getSandbox":    "Describes a sandbox. Other requests about it restart its idle timeout; this one does not.",
	"renewSandbox":  "Restarts the idle timeout. Each use of the sandbox does the same.",
	"deleteSandbox": "Kills all that runs in the sandbox and removes its files. Snapshots of it stay.",

	"listContexts":      "Lists contexts, also those that have ended a short time ago.",
	"createContext":     "Starts a Node process that keeps the declarations of its cells until it is deleted, idle for some time, or exits.",
	"getContext":        "Says whether the context is active, or why it has ended.",
	"deleteContext":     "Ends the context and cancels its current cell.",
	"evaluateCell":      "Evaluates code that sees the top-level declarations of earlier cells. Cells are evaluated one after another." + cancelText,
	"completeInContext": "Lists names that can complete the last name of a line of code. It calls no code of the guest.",
	"interruptContext":  "Interrupts the current cell. Mostly the context survives.",

	"removeFile":   "Removes a file, an empty folder or, if recursive is true, a folder with its content.",
	"readFile":     "Returns the bytes of a file. A Range header selects a part.",
	"writeFile":    "Writes a file from the bytes of the request, and replaces an existing one.",
	"makeFolder":   "Makes a folder and, if createParents is true, its parents.",
	"listFiles":    "Lists the entries of a folder or, if recursive is true, of all folders below it.",
	"moveFile":     "Renames a file, a folder or a link.",
	"statFile":     "Describes the file that a path leads to or, if links is true, the link.",
	"packFolder":   "Returns the files, folders and links below a folder as a tar archive. The archive is written while it is sent.",
	"unpackFolder": "Unpacks regular files, folders and links of a tar archive, which must stay in the folder.",

	"listListeners": "Lists the addresses on which programs of the sandbox listen now.",
	"waitForPort":   "Returns when a program listens on the port, or after the timeout.",

	"listProcesses": "Lists processes, also those that have ended a short time ago.",
	"spawn":         "Starts a process with pipes or a terminal. It ends with its sandbox at the latest, and counts as a run for its whole life.",
	"getProcess":    "Says whether the process is active, what it has used and, after its end, its result.",
	"deleteProcess": "Kills the process and its descendants, and forgets its result.",
	"followProcess": "Streams output and other events. Last-Event-ID continues after an event; a gap event says that some have been dropped.",
	"resizeProcess": "Changes the size of the terminal. The foreground processes get SIGWINCH.",
	"signalProcess": "Sends a signal to the process, or to its process group.",
	"writeProcess":  "Writes to standard input and waits until the process has room for it.",
	"waitProcess":   "Returns when the process has ended, or after the timeout.",

	"takeSnapshot":   "Copies the sandbox's own folders. A new sandbox can begin with them.",
	"listSnapshots":  "Lists your snapshots only.",
	"deleteSnapshot": "Deletes a snapshot. It fails while a sandbox uses its files.",
}
