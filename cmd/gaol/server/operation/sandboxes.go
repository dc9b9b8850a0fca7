package operation

import (
	"net/http"

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
		ofService(Operation{
			Name: "deleteSandbox", Method: http.MethodDelete, Path: one, Query: true,
			Summary: "Delete a sandbox, with all that runs in it",
			Doc:     "Kills all that runs in the sandbox and removes its files. Snapshots of it stay.",
		}, (*service.Service).Delete),
		ofSandbox(Operation{
			Name: "getUsage", Method: http.MethodGet, Path: one + "/usage", Query: true,
			Summary: "Count the resources that a sandbox uses",
			Doc:     "Counts processes, descriptors, sockets, memory and files.",
		}, (*service.Sandbox).Usage),
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
		}, (*service.Sandbox).TakeSnapshot),
		ofService(Operation{
			Name: "listSnapshots", Method: http.MethodGet, Path: "/v1/snapshots", Query: true,
			Summary: "List your snapshots, by name",
			Doc:     "Lists your snapshots only.",
		}, (*service.Service).ListSnapshots),
		ofService(Operation{
			Name: "deleteSnapshot", Method: http.MethodDelete, Path: "/v1/snapshots/{name}", Query: true,
			Summary: "Delete a snapshot that no sandbox uses",
			Doc:     "Deletes a snapshot. It fails while a sandbox uses its files.",
		}, (*service.Service).DeleteSnapshot),
	}
}
