package client

import "context"

// Usage counts the resources that a sandbox uses.
type Usage struct {
	RunningProcesses  int   // of runs, processes and contexts, with their descendants
	ExitedProcesses   int   // processes and contexts of the HTTP API that have ended and are kept
	OpenFds           int   // of all processes together
	Sockets           int   // of all kinds
	SocketListeners   int   // of TCP
	SocketConnections int   // of TCP
	Pipes             int   // with those of standard input and output
	Ptys              int   // terminals
	MemoryBytes       int64 // of all processes together
	DiskBytes         int64 // written to the tree
	Inodes            int64 // files and folders written to the tree
	Truncated         bool  // there are more descriptors than the server counts
}

// Usage counts what the sandbox uses now.
func (sb *Sandbox) Usage(ctx context.Context) (u Usage, err error) {
	err = sb.c.do(ctx, "getUsage", sb.in(), &u)
	return u, wrap("usage", err)
}
