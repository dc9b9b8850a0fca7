package client

import (
	"context"

	"gaol/runtime/requestjson"
)

// SnapshotInfo describes a snapshot of the caller.
type SnapshotInfo struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes of its files
}

// Snapshot copies the folders of the sandbox to a snapshot with a new name, which
// [CreateOptions.Snapshot] can have. It outlives the sandbox and the connection.
func (sb *Sandbox) Snapshot(ctx context.Context, name string) (SnapshotInfo, error) {
	var info SnapshotInfo
	err := sb.c.do(ctx, "takeSnapshot", requestjson.SnapshotIn{InSandbox: sb.in(), SnapshotRequest: requestjson.SnapshotRequest{Name: name}}, &info)
	return info, wrap("snapshot", err)
}

// Snapshots lists the caller's snapshots, by name.
func (c *Client) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	var list struct{ Snapshots []SnapshotInfo }
	err := c.do(ctx, "listSnapshots", struct{}{}, &list)
	return list.Snapshots, wrap("list snapshots", err)
}

// RemoveSnapshot deletes a snapshot that no sandbox uses.
func (c *Client) RemoveSnapshot(ctx context.Context, name string) error {
	return wrap("remove snapshot", c.do(ctx, "deleteSnapshot", requestjson.SnapshotName{Name: name}, nil))
}
