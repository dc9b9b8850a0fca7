package service

import (
	"context"
)

// Usage counts what the sandbox uses now.
func (sb *Sandbox) Usage(ctx context.Context) (*SandboxUsage, error) {
	done, err := sb.service.listings.wait(ctx, sb.owner)
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := sb.runtime.Resources(ctx)
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
