package session

import (
	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/service"
)

func addSnapshots(m *methodSet) {
	add(m, "snapshot", takeSnapshot)
	add(m, "listSnapshots", listSnapshots)
	add(m, "removeSnapshot", func(t *task, p snapshotName) (any, error) {
		return nil, t.service.DeleteSnapshot(t.ctx, t.tenant, p.Name)
	})
}

// snapshotParams are those of snapshot.
type snapshotParams struct {
	SandboxParams
	service.SnapshotRequest
}

func takeSnapshot(t *task, p snapshotParams) (any, error) {
	audit.Of(t.ctx).SetSandbox(p.Sandbox)
	return t.service.TakeSnapshot(t.ctx, t.tenant, p.Sandbox, p.SnapshotRequest)
}

// snapshotList is the result of listSnapshots.
type snapshotList struct {
	Snapshots []service.SnapshotInfo `json:"snapshots"`
}

func listSnapshots(t *task, _ struct{}) (any, error) {
	list, err := t.service.Snapshots(t.ctx, t.tenant)
	return snapshotList{list}, err
}

// snapshotName are the parameters of removeSnapshot.
type snapshotName struct {
	Name string `json:"name" maxLength:"64"`
}
