// Package client is gaol's SDK for programs that are not root: it uses a gaol server, with the methods
// and types of package runtime.
//
//	Dial ──> Client ── Create ──> Sandbox ─┬─ Run, Exec, Command, Evaluate ──> runtime.Result, runtime.Evaluation
//	            │                     │    ├─ Spawn, SpawnCode ──> Process
//	          Close                 Close  ├─ NewContext ──> Context
//	                                       ├─ FS ──> files and archives
//	                                       ├─ WaitForListener, Dial ──> net.Conn
//	                                       └─ Snapshot, Usage
//
//	c, err := client.Dial(ctx, client.Options{})
//	if err != nil { ... }
//	defer c.Close()
//	sb, err := c.Create(ctx, client.CreateOptions{})
//	if err != nil { ... }
//	res, err := sb.Run(ctx, `__return({ sum: 1 + 2 })`, runtime.RunOptions{})
//
// A client is one WebSocket connection. It ends with the server, or when the network fails; then all
// methods return an error that wraps [ErrDisconnected]. It does not connect again: everything that a client
// has created ends with its connection, except for detached sandboxes.
//
// Run, Evaluate and RunSnippet of the client use a new sandbox for each call. Submit does that later: a batch run does not end
// with its connection.
//
// The operator of the server decides which images, permissions and limits callers may
// use. Its refusals are an [*Error].
//
// Functions of [CreateOptions.Bindings] run in this process, when a program in the sandbox calls them.
// The server and the network see their arguments and results.
package client
