package quota

import (
	"cmp"
	"fmt"
	"math"
	goruntime "runtime"
	"time"
)

// Limits bound one tenant, or all tenants together. A zero field takes its default.
type Limits struct {
	Sandboxes int     `json:"sandboxes,omitzero"`      // at once
	Runs      int     `json:"runs,omitzero"`           // at once, with those that wait, processes and contexts
	Memory    int64   `json:"memoryBytes,omitzero"`    // the memory limits of active runs together
	CPUs      float64 `json:"cpus,omitzero"`           // the processor limits of active runs together
	Disk      int64   `json:"diskBytes,omitzero"`      // the disk limits of sandboxes together
	Requests  float64 `json:"requestsPerSec,omitzero"` // on average; twice as many in a burst
	Upload    int64   `json:"uploadBytes,omitzero"`    // of one request

	Concurrent    int   `json:"concurrentRequests,omitzero"` // requests without a complete response, at once
	Bodies        int64 `json:"bodyBytes,omitzero"`          // the JSON bodies of these requests together
	Snapshots     int   `json:"snapshots,omitzero"`          // kept
	SnapshotBytes int64 `json:"snapshotBytes,omitzero"`      // of the files of all snapshots
	Connections   int   `json:"connections,omitzero"`        // at once to ports of guests, with requests that wait for one
}

// DefaultLimits returns the limits of all tenants together on a machine with some bytes of
// memory, and those of one tenant: half as much, and as many processors as there are.
func DefaultLimits(memory int64) (server, tenant Limits) {
	processors := goruntime.NumCPU()
	server = Limits{
		Sandboxes: 1000, Runs: 500,
		Memory: memory / 4 * 3, CPUs: float64(64 * processors), Disk: 64 << 30,
		Requests: 5000, Upload: 1 << 30, Concurrent: 4096, Bodies: 256 << 20,
		Snapshots: 1000, SnapshotBytes: 64 << 30, Connections: 2048,
	}
	tenant = Limits{
		Sandboxes: 100, Runs: 100,
		Memory: server.Memory / 2, CPUs: server.CPUs / 2, Disk: server.Disk / 2,
		Requests: 500, Upload: 256 << 20, Concurrent: 1024, Bodies: 128 << 20,
		Snapshots: 100, SnapshotBytes: server.SnapshotBytes / 2, Connections: 512,
	}
	return server, tenant
}

// Or returns the limits with the fields of other where l has zero.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		cmp.Or(l.Sandboxes, other.Sandboxes), cmp.Or(l.Runs, other.Runs), cmp.Or(l.Memory, other.Memory), cmp.Or(l.CPUs, other.CPUs),
		cmp.Or(l.Disk, other.Disk), cmp.Or(l.Requests, other.Requests), cmp.Or(l.Upload, other.Upload),
		cmp.Or(l.Concurrent, other.Concurrent), cmp.Or(l.Bodies, other.Bodies),
		cmp.Or(l.Snapshots, other.Snapshots), cmp.Or(l.SnapshotBytes, other.SnapshotBytes), cmp.Or(l.Connections, other.Connections),
	}
}

// Check returns an error if a field is negative or no number.
func (l Limits) Check() error {
	for name, v := range map[string]float64{
		"sandboxes": float64(l.Sandboxes), "runs": float64(l.Runs), "memoryBytes": float64(l.Memory), "cpus": l.CPUs,
		"diskBytes": float64(l.Disk), "requestsPerSec": l.Requests, "uploadBytes": float64(l.Upload),
		"concurrentRequests": float64(l.Concurrent), "bodyBytes": float64(l.Bodies),
		"snapshots": float64(l.Snapshots), "snapshotBytes": float64(l.SnapshotBytes), "connections": float64(l.Connections),
	} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("%s: %v is not a limit", name, v)
		}
	}
	return nil
}

// Exceeded says that a quota is used up.
type Exceeded struct {
	Limit string // the JSON name of the field, or "queue" for a run whose turn did not come

	// Server is true if all tenants together have used it up.
	Server bool

	// RetryAfter is when it may be free again; zero if the request can never be served.
	RetryAfter time.Duration
}

// Error names the limit.
func (e *Exceeded) Error() string {
	whose := "your"
	if e.Server {
		whose = "the server's"
	}
	if e.RetryAfter == 0 {
		return fmt.Sprintf("the request needs more than %s quota %s", whose, e.Limit)
	}
	return fmt.Sprintf("%s quota %s is used up", whose, e.Limit)
}
