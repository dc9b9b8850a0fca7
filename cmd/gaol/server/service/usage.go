package service

import (
	"context"
)

// SandboxUsage counts the resources that a sandbox uses.
type SandboxUsage struct {
	RunningProcesses  int   `json:"runningProcesses" doc:"Of runs, processes and contexts, with their descendants."`
	ExitedProcesses   int   `json:"exitedProcesses" doc:"Processes and contexts of the HTTP API that have ended and are kept."`
	OpenFds           int   `json:"openFds" doc:"Descriptors of all processes together."`
	Sockets           int   `json:"sockets" doc:"Open sockets of all kinds."`
	SocketListeners   int   `json:"socketListeners" doc:"TCP sockets that listen."`
	SocketConnections int   `json:"socketConnections" doc:"TCP sockets that are connected."`
	Pipes             int   `json:"pipes" doc:"Open pipes, with those of standard input and output."`
	Ptys              int   `json:"ptys" doc:"Open terminals."`
	MemoryBytes       int64 `json:"memoryBytes" doc:"Memory of all processes together."`
	DiskBytes         int64 `json:"diskBytes" doc:"Bytes written to the tree."`
	Inodes            int64 `json:"inodes" doc:"Files and folders written to the tree."`
	Truncated         bool  `json:"truncated" doc:"There are more than 16,384 descriptors; the rest are not counted."`
}

// Usage counts what the sandbox uses now.
func (sb *Sandbox) Usage(ctx context.Context) (*SandboxUsage, error) {
	done, err := sb.service.listings.wait(ctx, sb.owner)
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := sb.Resources(ctx)
	if err != nil {
		return nil, sb.fail("count resources", err)
	}
	return &SandboxUsage{
		RunningProcesses: r.Processes, ExitedProcesses: sb.service.retained.count(sb), OpenFds: r.Descriptors,
		Sockets: r.Sockets, SocketListeners: r.Listeners, SocketConnections: r.Connections, Pipes: r.Pipes, Ptys: r.Terminals,
		MemoryBytes: r.Memory, DiskBytes: r.Disk, Inodes: r.Inodes, Truncated: r.Truncated,
	}, nil
}

// count returns how many ended processes and contexts of a sandbox are retained.
func (r *retained) count(sb *Sandbox) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.byName[sb.owner] {
		if e.sandbox == sb {
			n++
		}
	}
	return n
}
