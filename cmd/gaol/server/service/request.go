package service

import (
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Start and the types below are the JSON types of requests and results.
type (
	Start           = requestjson.Start
	Timeout         = requestjson.Timeout
	Program         = requestjson.Program
	Command         = requestjson.Command
	Cell            = requestjson.Cell
	Snippet         = requestjson.Snippet
	Tree            = requestjson.Tree
	Limits          = requestjson.Limits
	Mount           = requestjson.Mount
	NodeModules     = requestjson.NodeModules
	RunRequest      = requestjson.RunRequest
	EvaluateRequest = requestjson.EvaluateRequest
	SandboxRequest  = requestjson.SandboxRequest
	ContextRequest  = requestjson.ContextRequest
	ProcessRequest  = requestjson.ProcessRequest
	Terminal        = requestjson.Terminal
	Input           = requestjson.Input
	SnapshotRequest = requestjson.SnapshotRequest
	PortWait        = requestjson.PortWait
	FileMode        = requestjson.FileMode
	FileWrite       = requestjson.FileWrite
	FileStat        = requestjson.FileStat
	FolderList      = requestjson.FolderList
	FolderMake      = requestjson.FolderMake
	FileRemove      = requestjson.FileRemove
	FolderUnpack    = requestjson.FolderUnpack

	SandboxInfo  = resultjson.SandboxInfo
	ProcessInfo  = resultjson.ProcessInfo
	ProcessUsage = resultjson.ProcessUsage
	ContextInfo  = resultjson.ContextInfo
	Completion   = resultjson.Completion
	SnapshotInfo = resultjson.SnapshotInfo
	Listener     = resultjson.Listener
	PortState    = resultjson.PortState
	FileInfo     = resultjson.FileInfo
	Unpacked     = resultjson.Unpacked
	SandboxUsage = resultjson.SandboxUsage
	Gap          = resultjson.Gap
	Normalized   = resultjson.Normalized
)

// The states of processes and contexts.
const (
	Running = resultjson.Running
	Ended   = resultjson.Ended
)
