package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/service"
)

// addSnapshots adds the operations on snapshots.
func (a *API) addSnapshots() {
	take := operation("takeSnapshot", http.MethodPost, "/v1/sandboxes/{id}/snapshots", "Copy the folders of a sandbox to a snapshot",
		http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	take.DefaultStatus = http.StatusCreated
	huma.Register(a.huma, take, func(ctx context.Context, r *requestIn[service.SnapshotRequest]) (*result[*service.SnapshotInfo], error) {
		info, err := a.service.TakeSnapshot(ctx, tenantOf(ctx), r.ID, r.Body)
		if err != nil {
			return nil, fail(err)
		}
		return &result[*service.SnapshotInfo]{info}, nil
	})
	huma.Register(a.huma, operation("listSnapshots", http.MethodGet, "/v1/snapshots", "List your snapshots, by name"),
		func(ctx context.Context, _ *struct{}) (*result[snapshotList], error) {
			list, err := a.service.Snapshots(ctx, tenantOf(ctx))
			if err != nil {
				return nil, fail(err)
			}
			return &result[snapshotList]{snapshotList{list}}, nil
		})
	remove := operation("deleteSnapshot", http.MethodDelete, "/v1/snapshots/{name}", "Delete a snapshot that no sandbox uses",
		http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity)
	huma.Register(a.huma, remove, func(ctx context.Context, r *inSnapshot) (*empty, error) {
		if err := a.service.DeleteSnapshot(ctx, tenantOf(ctx), r.Name); err != nil {
			return nil, fail(err)
		}
		return nil, nil
	})
}

// snapshotList is a list of snapshots.
type snapshotList struct {
	Snapshots []service.SnapshotInfo `json:"snapshots"`
}

// inSnapshot is a request about a snapshot.
type inSnapshot struct {
	Name string `path:"name" maxLength:"64" doc:"The name of the snapshot."`
}
