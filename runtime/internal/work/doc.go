// Package work parses hostile text in confined processes: it compiles, bundles and lints code and checks values
// against JSON schemas.
//
//	Of ── Domain ── operation ── a free process, or a new one ── request ──> run ── reply
//	                   └─ canceled, or too long ── the process is killed: only this operation fails
//	idle processes end after a while, or by CloseIdle
//
// A [Domain] owns the processes of one trust domain, which is a parent of cgroups: in the server one
// for each tenant. A process performs one operation at a time, with one processor and limited
// memory, charged to that parent. Package [gaol/jail/subprocess] confines it.
//
// Replies are untrusted, because the parsed text may have taken over the process. They are bounded and
// decoded strictly, and they contain nothing that the domain's own code could not contain: code for its
// sandboxes, positions and messages.
//
// [InProcess] is the domain of programs that trust the text as themselves: operations run in this
// process, without limits but the time that their caller waits.
package work
