package requestjson

import (
	"cmp"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"gaol/policy"
)

// Inputs of the server's operations. The name of a sandbox, a process or a context is a part of the path by
// HTTP.
type (
	// InSandbox is the input of an operation in a sandbox.
	InSandbox struct {
		Sandbox string `json:"sandbox" maxLength:"64" doc:"The sandbox."`
	}
	// ProgramIn is the input of runIn and execIn.
	ProgramIn struct {
		InSandbox
		Program
	}
	// CommandIn is the input of commandIn.
	CommandIn struct {
		InSandbox
		Command
	}
	// SnippetIn is the input of evaluateIn.
	SnippetIn struct {
		InSandbox
		Snippet
	}
	// SpawnIn is the input of spawn.
	SpawnIn struct {
		InSandbox
		ProcessRequest
	}
	// SnapshotIn is the input of takeSnapshot.
	SnapshotIn struct {
		InSandbox
		Name string `json:"name" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"A name that no other snapshot of yours has."`
	}
	// SnapshotName is the input of deleteSnapshot.
	SnapshotName struct {
		Name string `json:"name" maxLength:"64" doc:"The name of the snapshot."`
	}
	// ImageIn is the input of buildImage.
	ImageIn struct {
		Name        string             `json:"name" pattern:"^[a-z0-9][a-z0-9._-]{0,63}$" doc:"A name that no other image of yours has."`
		From        string             `json:"from,omitempty" maxLength:"255" doc:"The name of the image to begin with: one of yours, or of the server. By default the one called default."`
		Steps       []ImageStep        `json:"steps" minItems:"1" maxItems:"100" doc:"Changes, in their order."`
		Permissions policy.Permissions `json:"permissions,omitzero" doc:"Of the commands, as for a sandbox."`
		Limits      *Limits            `json:"limits,omitempty" doc:"Limits of each command. By default memoryBytes is 1 GiB, diskBytes 4 GiB, files 262,144 and pids 256."`
		TimeoutMs   int64              `json:"timeoutMs,omitempty" minimum:"0" doc:"Wall-clock time limit of each command. By default 600,000."`
	}
	// ImageStep is a change of an image. Exactly one field is present.
	ImageStep struct {
		Run  string            `json:"run,omitempty" pattern:"^[^\\x00]*$" maxLength:"65536" doc:"A command for /bin/sh. Its changes of files are kept, except in /tmp and /var/tmp."`
		Env  map[string]string `json:"env,omitempty" doc:"Variables of later commands and of runs of the image. $NAME is the value of an earlier variable."`
		User string            `json:"user,omitempty" enum:"root,node" doc:"The user of later commands: root (the default) owns all files of the image, node its home folder and /workspace."`
		Dir  string            `json:"dir,omitempty" pattern:"^[^\\x00]*$" maxLength:"4095" doc:"The working directory of later commands, absolute or relative to the previous one. By default /."`
	}
	// ImageName is the input of deleteImage.
	ImageName struct {
		Name string `json:"name" maxLength:"64" doc:"The name of an image of yours."`
	}

	// InProcess is the input of an operation on a process.
	InProcess struct {
		InSandbox
		Process string `json:"process" maxLength:"64" doc:"The process."`
	}
	// WaitIn is the input of waitProcess.
	WaitIn struct {
		InProcess
		TimeoutMs int64 `json:"timeoutMs,omitempty" minimum:"0" maximum:"86400000" doc:"How long to wait. By default until the end."`
	}
	// SignalIn is the input of signalProcess.
	SignalIn struct {
		InProcess
		Signal string `json:"signal" maxLength:"16" doc:"Its name, such as SIGTERM. SIGKILL ends the process with all its descendants."`
		Group  bool   `json:"group,omitempty" doc:"Send it to the process group that the process leads."`
	}
	// ResizeIn is the input of resizeProcess.
	ResizeIn struct {
		InProcess
		Rows uint16 `json:"rows" minimum:"1" maximum:"65535" doc:"Height in characters."`
		Cols uint16 `json:"cols" minimum:"1" maximum:"65535" doc:"Width in characters."`
	}
	// StdinIn is the input of writeProcess.
	StdinIn struct {
		InProcess
		Input
	}
	// FollowIn is the input of followProcess.
	FollowIn struct {
		InProcess
		After uint64 `json:"lastEventId,omitempty" doc:"The number of the last event that the client has got. By default the events begin with the oldest that is kept."`
	}

	// InContext is the input of an operation on a context.
	InContext struct {
		InSandbox
		Context string `json:"context" maxLength:"64" doc:"The context."`
	}
	// ContextIn is the input of createContext.
	ContextIn struct {
		InSandbox
		ContextRequest
	}
	// CellIn is the input of evaluateCell.
	CellIn struct {
		InContext
		Cell
	}
	// CompleteIn is the input of completeInContext.
	CompleteIn struct {
		InContext
		Line string `json:"line" maxLength:"65536" doc:"Code up to the cursor."`
	}

	// InPort is the input of an operation on a port of a sandbox.
	InPort struct {
		InSandbox
		Port uint16 `json:"port" minimum:"1" maximum:"65535" doc:"A TCP port of the sandbox."`
	}
	// PortWaitIn is the input of waitForPort.
	PortWaitIn struct {
		InPort
		Timeout
	}

	// InFile is the input of an operation on a file.
	InFile struct {
		InSandbox
		Path      string `json:"path,omitempty" maxLength:"4095" doc:"An absolute, clean path in the sandbox. In a query, its bytes need not be UTF-8."`
		PathBytes []byte `json:"pathBytes,omitempty" maxLength:"5460" doc:"Instead of path: its bytes in base64, if they are not UTF-8."`
	}
	// ReadIn is the input of readFile.
	ReadIn struct {
		InFile
		Offset int64 `json:"offset,omitempty" minimum:"0" doc:"The byte to begin at. By default 0."`
		Limit  int64 `json:"limit,omitempty" minimum:"0" doc:"How many bytes to read at most. By default all."`
	}
	// WriteIn is the input of writeFile.
	WriteIn struct {
		InFile
		FileMode
		Parents bool `json:"createParents,omitempty" doc:"Make missing parent folders."`
	}
	// FileMode holds the permissions of a new file or folder.
	FileMode struct {
		Mode string `json:"mode,omitempty" pattern:"^0{0,3}[1-7][0-7]{0,2}$" doc:"Permissions of a new file or folder, in octal, from 1 to 777. By default 644, and 755 for a folder."`
	}
	// StatIn is the input of statFile.
	StatIn struct {
		InFile
		FileStat
	}
	// FileStat selects what statFile describes.
	FileStat struct {
		Links bool `json:"links,omitempty" doc:"Describe a link itself."`
	}
	// ListIn is the input of listFiles.
	ListIn struct {
		InFile
		FolderList
	}
	// FolderList selects files to list.
	FolderList struct {
		Recursive bool   `json:"recursive,omitempty" doc:"List everything below the folder, without following links."`
		Limit     int    `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"1000" doc:"How many files to list at most."`
		Exclude   string `json:"exclude,omitempty" maxLength:"255" doc:"The name of folders below the folder that are listed without their content, such as node_modules."`
	}
	// FolderIn is the input of makeFolder.
	FolderIn struct {
		InFile
		FolderMake
	}
	// FolderMake describes a folder to make.
	FolderMake struct {
		FileMode
		Parents bool `json:"createParents,omitempty" doc:"Make missing parent folders. An existing folder is no error then."`
	}
	// RemoveIn is the input of removeFile.
	RemoveIn struct {
		InFile
		FileRemove
	}
	// FileRemove selects what removeFile removes.
	FileRemove struct {
		Recursive bool `json:"recursive,omitempty" doc:"Remove a folder with its content."`
	}
	// UnpackIn is the input of unpackFolder.
	UnpackIn struct {
		InFile
		FolderUnpack
	}
	// FolderUnpack describes how to unpack an archive.
	FolderUnpack struct {
		Parents bool `json:"createParents,omitempty" doc:"Make the folder and its parents if they are missing."`
	}
	// MoveIn is the input of moveFile.
	MoveIn struct {
		InSandbox
		From      string `json:"from,omitempty" maxLength:"4095" doc:"The path of a file, a folder or a link."`
		FromBytes []byte `json:"fromBytes,omitempty" maxLength:"5460" doc:"Instead of from: its bytes in base64."`
		To        string `json:"to,omitempty" maxLength:"4095" doc:"Its new path. An existing file is replaced by a file, an empty folder by a folder."`
		ToBytes   []byte `json:"toBytes,omitempty" maxLength:"5460" doc:"Instead of to: its bytes in base64."`
	}

	// InBatch is the input of an operation on a batch run.
	InBatch struct {
		Key string `json:"key" maxLength:"255" doc:"The key of the batch run."`
	}
	// WaitBatchIn is the input of waitBatchRun.
	WaitBatchIn struct {
		InBatch
		TimeoutMs int64 `json:"timeoutMs,omitempty" minimum:"0" maximum:"86400000" doc:"How long to wait. By default until the end."`
	}

	// ToolIn is the input of tool.
	ToolIn struct {
		Tool      string          `json:"tool" maxLength:"64" doc:"The name of a tool of package sandboxtools."`
		Arguments json.RawMessage `json:"arguments,omitempty" doc:"An object, according to the tool's schema."`
	}
	// NormalizeIn is the input of normalize.
	NormalizeIn struct {
		Code string `json:"code" maxLength:"4194304" doc:"A snippet as models write it."`
	}
)

// InSandboxID returns the name of the sandbox.
func (in *InSandbox) InSandboxID() string { return in.Sandbox }

// InPartID returns the name of the process.
func (in *InProcess) InPartID() string { return in.Process }

// InPartID returns the name of the context.
func (in *InContext) InPartID() string { return in.Context }

// MergePaths moves the bytes of a path that is not UTF-8 to Path.
func (in *InFile) MergePaths() error { return mergePath("path", &in.Path, &in.PathBytes) }

// MergePaths moves the bytes of paths that are not UTF-8 to From and To.
func (in *MoveIn) MergePaths() error {
	return cmp.Or(mergePath("from", &in.From, &in.FromBytes), mergePath("to", &in.To, &in.ToBytes))
}

func mergePath(name string, text *string, bytes *[]byte) error {
	if (*text == "") == (len(*bytes) == 0) {
		return fmt.Errorf("want either %s or %sBytes", name, name)
	}
	*text, *bytes = *text+string(*bytes), nil
	return nil
}

// SplitPath returns a path as text, or its bytes if it is not UTF-8.
func SplitPath(path string) (text string, bytes []byte) {
	if utf8.ValidString(path) {
		return path, nil
	}
	return "", []byte(path)
}
