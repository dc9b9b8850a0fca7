// Package run tests programs in jails: Run, Exec, Command and Spawn, their limits, output,
// streams, terminals and queues, pools of runtimes, and the control protocol between Node
// and the host, with hostile guests on the other side.
package run
