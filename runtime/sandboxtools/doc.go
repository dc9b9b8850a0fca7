// Package sandboxtools offers sandboxes to workflow engines and agents: ten tools with the
// names and arguments that engines use, called with JSON.
//
//	New ──> Toolbox ── Call("sandbox_init") ──> containerId ── Call("sandbox_…") … ── Call("sandbox_destroy")
//	           │                                     └── IdleLimit without a call: closed as well
//	         Close closes all
//
// # The tools
//
//	tool                      arguments; ! marks required ones                      result
//	sandbox_init              containerId imageName containerName                   containerId containerName hostName
//	                          projectOutPath rootPath="workspace"                   imageName rootPath projectOutPath
//	sandbox_destroy           containerId! removeContainer=true                     containerId removed
//	sandbox_command           containerId! executable! args                         stdout stderr exitCode timedOut
//	                          workingDirectory="." envVars timeout=30000            cause stdoutTruncated stderrTruncated
//	sandbox_write_file        containerId! path! content! encoding="utf8"           path size
//	                          createParentDirs=false
//	sandbox_read_file         containerId! path! encoding="utf8"                    path content encoding size
//	sandbox_list_directory    containerId! path! recursive=false                    path entries truncated
//	sandbox_create_directory  containerId! path! recursive=false                    path
//	sandbox_delete            containerId! path! recursive=false force=false        path deleted
//	sandbox_exists            containerId! path!                                    path exists
//	sandbox_file_info         containerId! path!                                    path name type size permissions owner group
//	                                                                                modifiedAt accessedAt createdAt
//
// [Tools] returns their JSON Schemas. Package internal/schema derives the schemas, the decoding
// and the checks of the arguments from the structs, such as [InitArgs].
//
// Paths are paths in the guest, absolute or relative to /<rootPath>. ".." is resolved
// lexically and never leaves the guest's root. Package vfs/hostfs keeps the guest's links
// within the guest's tree.
//
// A file in projectOutPath is the same file in the guest and on the host. The folder must
// be below Options.ProjectBase; it is opened by descriptors, and no link is followed.
//
// A command that fails, is killed, or times out has a result. All errors are *[Error], with
// a [Code] for programs, the name of the invalid argument, and a text for people.
//
// # Life cycle
//
// A sandbox that is destroyed or expires is not_found at once; its calls in progress fail
// with closed. removeContainer=false stops a sandbox: its commands are killed, new ones
// fail with closed, and the tools for files keep working. A sandbox counts towards
// Options.MaxSandboxes until it is closed.
//
// # Non-goals
//
// It is not a server: MCP and HTTP are built on top of it. It does not know users: any caller can
// use all of its sandboxes. An engine needs a Toolbox for each party that must not reach the
// sandboxes of others, or has to keep the ids apart. It imports only the images that
// Options.Images lists.
//
// # Not protected against
//
// It does not protect against the threats that package runtime excludes. Only the
// file system limits how much guests write below ProjectBase. The number of concurrent
// calls is not limited, and each may hold some 100 MiB for a file of the maximum size: the
// server that accepts calls must limit them. The guest controls the content of results, and
// may try to mislead the model that reads them.
package sandboxtools
