// Package sandboxtools offers sandboxes to workflow engines and agents: ten tools with the
// names and arguments that they use, in JSON and as methods of Go's.
//
//	New ──> Toolbox ── Call("sandbox_init") ──> containerId ── Call("sandbox_…") … ── Call("sandbox_destroy")
//	           │                                     └── IdleLimit without a call: the same end
//	         Close ends all
//
// # The tools
//
//	tool                      arguments; ! has to be there                          result
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
// [Tools] has their JSON Schemas. Each argument's struct is the only table of it: the
// schema, the checks and what is read from JSON come from there.
//
// Paths are the guest's: absolute, or relative to /<rootPath>. ".." goes up by the text
// alone, and never out of the guest's root. What a guest's links do with them, package
// vfs/hostfs holds within the guest's tree.
//
// A file of projectOutPath is one file, in the guest and on the host. It takes
// Options.ProjectBase, and is found below it by descriptors, through no link.
//
// A command that fails, is killed, or runs out of time is a result. An error is an
// *[Error] with a [Code] for programs, the argument that is to blame, and a text for
// people.
//
// # Lives
//
// A sandbox that is destroyed, or ends for being idle, is not_found at once; calls that
// are under way on it end with closed. With removeContainer false it is stopped: what
// it runs is killed, commands are closed, and its files can be used. It keeps its place
// among Options.MaxSandboxes until it is gone.
//
// # What it is not
//
// No server: MCP and HTTP go on top of it. It knows no users: who can call it can use all
// of its sandboxes, so an engine makes one Toolbox for each party that must not reach the
// sandboxes of others, or keeps ids apart itself. It pulls and reads no images
// but those that Options.Images list.
//
// # What it does not protect against
//
// What package runtime does not. The disk below ProjectBase, which guests fill as the file
// system lets them. The number of calls at once, each of which may hold some 100 MiB for a
// largest file: that is for who listens to callers to bound. Content that comes back is
// the guest's word, and may be meant to mislead the model that reads it.
package sandboxtools
