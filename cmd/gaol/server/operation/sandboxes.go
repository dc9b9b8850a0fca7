package operation

import (
	"net/http"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/service"
)

func sandboxes() []*Operation {
	const all, one = "/v1/sandboxes", "/v1/sandboxes/{id}"
	return []*Operation{
		ofService(Operation{
			Name: "createSandbox", Method: http.MethodPost, Path: all, Status: http.StatusCreated,
			Summary: "Create a sandbox",
			Doc:     "Creates a sandbox. It lives until it is deleted, not used for its idle timeout, or older than its lifetime.",
		}, (*service.Service).CreateSandbox),
		ofService(Operation{
			Name: "listSandboxes", Method: http.MethodGet, Path: all, Query: true, unawaited: true,
			Summary: "List your sandboxes, the oldest first",
			Doc:     "Lists your sandboxes only. It does not renew them.",
		}, (*service.Service).ListSandboxes),
		ofService(Operation{
			Name: "getSandbox", Method: http.MethodGet, Path: one, Query: true, unawaited: true,
			Summary: "Describe a sandbox, without renewing it",
			Doc:     "Describes a sandbox. Other requests about it restart its idle timeout; this one does not.",
		}, (*service.Service).GetSandbox),
		ofService(Operation{
			Name: "renewSandbox", Method: http.MethodPost, Path: one + "/renew",
			Summary: "Restart the idle timeout of a sandbox",
			Doc:     "Restarts the idle timeout. Each use of the sandbox does the same.",
		}, (*service.Service).Renew),
		ofSandbox(Operation{
			Name: "pauseSandbox", Method: http.MethodPost, Path: one + "/pause",
			Summary: "Stop all that runs in a sandbox until it is resumed",
			Doc:     "Stops all processes. Until resumeSandbox, what would start one fails with paused. Time limits of runs do not include the pause; the sandbox's idle timeout and lifetime do.",
		}, (*service.Sandbox).Pause),
		ofSandbox(Operation{
			Name: "resumeSandbox", Method: http.MethodPost, Path: one + "/resume",
			Summary: "Let a paused sandbox continue",
			Doc:     "Lets the processes of a paused sandbox continue.",
		}, (*service.Sandbox).Resume),
		ofService(Operation{
			Name: "deleteSandbox", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "Delete a sandbox, with all that runs in it",
			Doc:     "Kills all that runs in the sandbox and removes its files. Snapshots of it stay.",
		}, (*service.Service).Delete),
		ofSandbox(Operation{
			Name: "getUsage", Method: http.MethodGet, Path: one + "/usage", Query: true,
			Summary: "Count the resources that a sandbox uses",
			Doc:     "Counts processes, descriptors, sockets, memory and files.",
		}, inTurn(quota.Listings, (*service.Sandbox).Usage)),
	}
}

func ports() []*Operation {
	const all = "/v1/sandboxes/{id}/listeners"
	return []*Operation{
		ofSandbox(Operation{
			Name: "listListeners", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the TCP addresses on which guests listen",
			Doc:     "Lists the addresses on which programs of the sandbox listen now.",
		}, (*service.Sandbox).ListListeners),
		ofSandbox(Operation{
			Name: "waitForPort", Method: http.MethodPost, Path: all + "/{port}/wait", BodyOptional: true,
			Summary: "Wait until a guest listens on a port",
			Doc:     "Returns when a program listens on the port, or after the timeout.",
		}, (*service.Sandbox).WaitForPort),
	}
}

func snapshots() []*Operation {
	return []*Operation{
		ofSandbox(Operation{
			Name: "takeSnapshot", Method: http.MethodPost, Path: "/v1/sandboxes/{id}/snapshots", Status: http.StatusCreated,
			Summary: "Copy the folders of a sandbox to a snapshot",
			Doc:     "Copies the sandbox's own folders. A new sandbox can begin with them.",
		}, inTurn(quota.Copies, (*service.Sandbox).TakeSnapshot)),
		ofService(Operation{
			Name: "listSnapshots", Method: http.MethodGet, Path: "/v1/snapshots", Query: true,
			Summary: "List your snapshots, by name",
			Doc:     "Lists your snapshots only.",
		}, inTurn(quota.Listings, (*service.Service).ListSnapshots)),
		ofService(Operation{
			Name: "deleteSnapshot", Method: http.MethodDelete, Path: "/v1/snapshots/{name}", Query: true,
			Summary: "Delete a snapshot that no sandbox uses",
			Doc:     "Deletes a snapshot. It fails while a sandbox uses its files.",
		}, inTurn(quota.Copies, (*service.Service).DeleteSnapshot)),
	}
}

func images() []*Operation {
	const all = "/v1/images"
	return []*Operation{
		ofService(Operation{
			Name: "buildImage", Method: http.MethodPost, Path: all, Events: buildEvents,
			Summary: "Build an image from another by steps",
			Doc:     "Builds an image that only you can use, if the server's operator allows it. Each command runs in a fresh sandbox. With Accept: text/event-stream the response is a stream of events with the output of all commands." + cancelText,
		}, (*service.Service).BuildImage),
		ofService(Operation{
			Name: "listImages", Method: http.MethodGet, Path: all, Query: true,
			Summary: "List your images, by name",
			Doc:     "Lists the images that you have built only.",
		}, inTurn(quota.Listings, (*service.Service).ListImages)),
		ofService(Operation{
			Name: "deleteImage", Method: http.MethodDelete, Path: all + "/{name}", Query: true,
			Summary: "Delete an image that no sandbox uses",
			Doc:     "Deletes an image of yours. It fails while a sandbox uses it.",
		}, inTurn(quota.Copies, (*service.Service).DeleteImage)),
	}
}

const (
	filesPath = "/v1/sandboxes/{id}/files"

	// Octets and Tar are media types.
	Octets = "application/octet-stream"
	Tar    = "application/x-tar"
)

func files() []*Operation {
	all := []*Operation{
		ofSandbox(Operation{
			Name: "readFile", Method: http.MethodGet, Path: filesPath, Download: Octets,
			Summary: "Read a file, or a range of it",
			Doc:     "Returns the bytes of a file. A Range header selects a part.",
		}, (*service.Sandbox).ReadFile),
		ofSandbox(Operation{
			Name: "writeFile", Method: http.MethodPut, Path: filesPath, Upload: []string{Octets},
			Summary: "Write a file",
			Doc:     "Writes a file from the bytes of the request, and replaces an existing one. It appears when all of it has been written.",
		}, (*service.Sandbox).WriteFile),
		ofSandbox(Operation{
			Name: "removeFile", Method: http.MethodDelete, Path: filesPath,
			Summary: "Remove a file or a folder",
			Doc:     "Removes a file, an empty folder or, if recursive is true, a folder with its content.",
		}, (*service.Sandbox).Remove),
		ofSandbox(Operation{
			Name: "statFile", Method: http.MethodGet, Path: filesPath + "/stat",
			Summary: "Describe a file",
			Doc:     "Describes the file that a path leads to or, if links is true, the link.",
		}, (*service.Sandbox).Stat),
		ofSandbox(Operation{
			Name: "listFiles", Method: http.MethodGet, Path: filesPath + "/list",
			Summary: "List a folder",
			Doc:     "Lists the entries of a folder or, if recursive is true, of all folders below it.",
		}, inTurn(quota.Listings, (*service.Sandbox).ListFiles)),
		ofSandbox(Operation{
			Name: "makeFolder", Method: http.MethodPost, Path: filesPath + "/folder",
			Summary: "Make a folder",
			Doc:     "Makes a folder and, if createParents is true, its parents.",
		}, (*service.Sandbox).MakeFolder),
		ofSandbox(Operation{
			Name: "moveFile", Method: http.MethodPost, Path: filesPath + "/move",
			Summary: "Move a file or a folder",
			Doc:     "Renames a file, a folder or a link.",
		}, (*service.Sandbox).Move),
		ofSandbox(Operation{
			Name: "packFolder", Method: http.MethodGet, Path: filesPath + "/tar", Download: Tar, Trailer: "Gaol-Skipped",
			Summary: "Download the content of a folder as a tar archive",
			Doc:     "Returns the files, folders and links below a folder as a tar archive. The archive is written while it is sent.",
		}, (*service.Sandbox).Tar),
		ofSandbox(Operation{
			Name: "unpackFolder", Method: http.MethodPut, Path: filesPath + "/tar", Upload: []string{Tar, Octets},
			Summary: "Unpack a tar archive into a folder",
			Doc:     "Unpacks regular files, folders and links of a tar archive that is not compressed. They must stay in the folder.",
		}, (*service.Sandbox).Untar),
	}
	for _, o := range all {
		o.Query = true
	}
	return all
}

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
