package operation

import (
	"context"
	"net/http"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

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
		defineUse(Operation{
			Name: "listListeners", Tag: tag, Method: http.MethodGet, Path: all, Query: true,
			Summary: "List the TCP addresses on which guests listen",
			Doc:     "Lists the addresses on which programs of the sandbox listen now.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, _ *requestjson.InSandbox) (listenerList, error) {
			list, err := sb.ListListeners(ctx)
			return listenerList{list}, err
		}),
		defineUse(Operation{
			Name: "waitForPort", Tag: tag, Method: http.MethodPost, Path: all + "/{port}/wait", BodyOptional: true,
			Summary: "Wait until a guest listens on a port",
			Doc:     "Returns when a program listens on the port, or after the timeout.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, in *requestjson.PortWaitIn) (*resultjson.PortState, error) {
			return sb.WaitForPort(ctx, in.Port, in.PortWait)
		}),
	}
}

func snapshots() []*Operation {
	const tag = "snapshots"
	return []*Operation{
		define(Operation{
			Name: "takeSnapshot", Tag: tag, Method: http.MethodPost, Path: "/v1/sandboxes/{id}/snapshots", Status: http.StatusCreated,
			Errors:  []int{http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity},
			Summary: "Copy the folders of a sandbox to a snapshot",
			Doc:     "Copies the sandbox's own folders. A new sandbox can begin with them.",
		}, func(ctx context.Context, c *Call, in *requestjson.SnapshotIn) (*resultjson.SnapshotInfo, error) {
			return c.Service.TakeSnapshot(ctx, c.Tenant, in.Sandbox, in.SnapshotRequest)
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
