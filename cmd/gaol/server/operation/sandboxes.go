package operation

import (
	"context"
	"net/http"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// SandboxList is a list of sandboxes.
type SandboxList struct {
	Sandboxes []*resultjson.SandboxInfo `json:"sandboxes"`
}

func sandboxes() []*Operation {
	const tag, all, one = "sandboxes", "/v1/sandboxes", "/v1/sandboxes/{id}"
	missing := []int{http.StatusNotFound}
	return []*Operation{
		define(Operation{
			Name: "createSandbox", Tag: tag, Method: http.MethodPost, Path: all, Status: http.StatusCreated, Errors: []int{http.StatusUnprocessableEntity},
			Summary: "Create a sandbox",
			Doc:     "Creates a sandbox. It lives until it is deleted, not used for its idle timeout, or older than its lifetime.",
		}, func(ctx context.Context, c *Call, in *requestjson.SandboxRequest) (*resultjson.SandboxInfo, error) {
			info, err := c.Service.CreateSandbox(ctx, c.Tenant, *in, c.Streams)
			if err == nil && c.Session != nil {
				c.Session.Own(info.ID)
			}
			return info, err
		}),
		define(Operation{
			Name: "listSandboxes", Tag: tag, Method: http.MethodGet, Path: all, Query: true, detached: true,
			Summary: "List your sandboxes, the oldest first",
			Doc:     "Lists your sandboxes only. It does not renew them.",
		}, func(_ context.Context, c *Call, _ *struct{}) (SandboxList, error) {
			return SandboxList{c.Service.Sandboxes(c.Tenant)}, nil
		}),
		define(Operation{
			Name: "getSandbox", Tag: tag, Method: http.MethodGet, Path: one, Query: true, Errors: missing, detached: true,
			Summary: "Describe a sandbox, without renewing it",
			Doc:     "Describes a sandbox. Other requests about it restart its idle timeout; this one does not.",
		}, func(_ context.Context, c *Call, in *requestjson.InSandbox) (*resultjson.SandboxInfo, error) {
			return c.Service.Sandbox(c.Tenant, in.Sandbox)
		}),
		define(Operation{
			Name: "renewSandbox", Tag: tag, Method: http.MethodPost, Path: one + "/renew", Errors: missing,
			Summary: "Restart the idle timeout of a sandbox",
			Doc:     "Restarts the idle timeout. Each use of the sandbox does the same.",
		}, func(ctx context.Context, c *Call, in *requestjson.InSandbox) (*resultjson.SandboxInfo, error) {
			return c.Service.Renew(ctx, c.Tenant, in.Sandbox)
		}),
		define(Operation{
			Name: "deleteSandbox", Tag: tag, Method: http.MethodDelete, Path: one, Query: true, Errors: missing,
			Summary: "Delete a sandbox, with all that runs in it",
			Doc:     "Kills all that runs in the sandbox and removes its files. Snapshots of it stay.",
		}, func(ctx context.Context, c *Call, in *requestjson.InSandbox) (none, error) {
			err := c.Service.Delete(ctx, c.Tenant, in.Sandbox)
			if err == nil && c.Session != nil {
				c.Session.Disown(in.Sandbox)
			}
			return none{}, err
		}),
		defineIn(Operation{
			Name: "getUsage", Tag: tag, Method: http.MethodGet, Path: one + "/usage", Query: true,
			Summary: "Count the resources that a sandbox uses",
			Doc:     "Counts processes, descriptors, sockets, memory and files.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, _ *requestjson.InSandbox) (*resultjson.SandboxUsage, error) {
			return sb.Usage(ctx)
		}),
	}
}

// Outputs of operations on ports and snapshots.
type (
	listenerList struct {
		Listeners []resultjson.Listener `json:"listeners"`
	}
	snapshotList struct {
		Snapshots []resultjson.SnapshotInfo `json:"snapshots"`
	}
)

func ports() []*Operation {
	const tag, all = "listeners", "/v1/sandboxes/{id}/listeners"
	return []*Operation{
		defineIn(Operation{
			Name: "listListeners", Tag: tag, Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the TCP addresses on which guests listen",
			Doc:     "Lists the addresses on which programs of the sandbox listen now.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, _ *requestjson.InSandbox) (listenerList, error) {
			list, err := sb.ListListeners(ctx)
			return listenerList{list}, err
		}),
		defineIn(Operation{
			Name: "waitForPort", Tag: tag, Method: http.MethodPost, Path: all + "/{port}/wait", BodyOptional: true,
			Summary: "Wait until a guest listens on a port",
			Doc:     "Returns when a program listens on the port, or after the timeout.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, in *requestjson.PortWaitIn) (*resultjson.PortState, error) {
			return sb.WaitForPort(ctx, in)
		}),
	}
}

func snapshots() []*Operation {
	const tag = "snapshots"
	return []*Operation{
		defineIn(Operation{
			Name: "takeSnapshot", Tag: tag, Method: http.MethodPost, Path: "/v1/sandboxes/{id}/snapshots", Status: http.StatusCreated,
			Errors:  []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
			Summary: "Copy the folders of a sandbox to a snapshot",
			Doc:     "Copies the sandbox's own folders. A new sandbox can begin with them.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, in *requestjson.SnapshotIn) (*resultjson.SnapshotInfo, error) {
			return sb.TakeSnapshot(ctx, in.Name)
		}),
		define(Operation{
			Name: "listSnapshots", Tag: tag, Method: http.MethodGet, Path: "/v1/snapshots", Query: true,
			Summary: "List your snapshots, by name",
			Doc:     "Lists your snapshots only.",
		}, func(ctx context.Context, c *Call, _ *struct{}) (snapshotList, error) {
			list, err := c.Service.Snapshots(ctx, c.Tenant)
			return snapshotList{list}, err
		}),
		define(Operation{
			Name: "deleteSnapshot", Tag: tag, Method: http.MethodDelete, Path: "/v1/snapshots/{name}", Query: true,
			Errors:  []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
			Summary: "Delete a snapshot that no sandbox uses",
			Doc:     "Deletes a snapshot. It fails while a sandbox uses its files.",
		}, func(ctx context.Context, c *Call, in *requestjson.SnapshotName) (none, error) {
			return none{}, c.Service.DeleteSnapshot(ctx, c.Tenant, in.Name)
		}),
	}
}
