package service

import (
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Requests and results have the types of their JSON.
type (
	// Start is [requestjson.Start].
	Start = requestjson.Start
	// Timeout is [requestjson.Timeout].
	Timeout = requestjson.Timeout
	// Program is [requestjson.Program].
	Program = requestjson.Program
	// Command is [requestjson.Command].
	Command = requestjson.Command
	// Cell is [requestjson.Cell].
	Cell = requestjson.Cell
	// Snippet is [requestjson.Snippet].
	Snippet = requestjson.Snippet
	// Tree is [requestjson.Tree].
	Tree = requestjson.Tree
	// Limits is [requestjson.Limits].
	Limits = requestjson.Limits
	// Mount is [requestjson.Mount].
	Mount = requestjson.Mount
	// NodeModules is [requestjson.NodeModules].
	NodeModules = requestjson.NodeModules
	// RunRequest is [requestjson.RunRequest].
	RunRequest = requestjson.RunRequest
	// EvaluateRequest is [requestjson.EvaluateRequest].
	EvaluateRequest = requestjson.EvaluateRequest
	// SandboxRequest is [requestjson.SandboxRequest].
	SandboxRequest = requestjson.SandboxRequest
	// ContextRequest is [requestjson.ContextRequest].
	ContextRequest = requestjson.ContextRequest
	// ProcessRequest is [requestjson.ProcessRequest].
	ProcessRequest = requestjson.ProcessRequest
	// Terminal is [requestjson.Terminal].
	Terminal = requestjson.Terminal
	// Input is [requestjson.Input].
	Input = requestjson.Input
	// SnapshotRequest is [requestjson.SnapshotRequest].
	SnapshotRequest = requestjson.SnapshotRequest
	// PortWait is [requestjson.PortWait].
	PortWait = requestjson.PortWait
	// FileMode is [requestjson.FileMode].
	FileMode = requestjson.FileMode
	// FileWrite is [requestjson.FileWrite].
	FileWrite = requestjson.FileWrite
	// FileStat is [requestjson.FileStat].
	FileStat = requestjson.FileStat
	// FolderList is [requestjson.FolderList].
	FolderList = requestjson.FolderList
	// FolderMake is [requestjson.FolderMake].
	FolderMake = requestjson.FolderMake
	// FileRemove is [requestjson.FileRemove].
	FileRemove = requestjson.FileRemove
	// FolderUnpack is [requestjson.FolderUnpack].
	FolderUnpack = requestjson.FolderUnpack

	// SandboxInfo is [resultjson.SandboxInfo].
	SandboxInfo = resultjson.SandboxInfo
	// ProcessInfo is [resultjson.ProcessInfo].
	ProcessInfo = resultjson.ProcessInfo
	// ProcessUsage is [resultjson.ProcessUsage].
	ProcessUsage = resultjson.ProcessUsage
	// ContextInfo is [resultjson.ContextInfo].
	ContextInfo = resultjson.ContextInfo
	// Completion is [resultjson.Completion].
	Completion = resultjson.Completion
	// SnapshotInfo is [resultjson.SnapshotInfo].
	SnapshotInfo = resultjson.SnapshotInfo
	// Listener is [resultjson.Listener].
	Listener = resultjson.Listener
	// PortState is [resultjson.PortState].
	PortState = resultjson.PortState
	// FileInfo is [resultjson.FileInfo].
	FileInfo = resultjson.FileInfo
	// Unpacked is [resultjson.Unpacked].
	Unpacked = resultjson.Unpacked
	// SandboxUsage is [resultjson.SandboxUsage].
	SandboxUsage = resultjson.SandboxUsage
	// Gap is [resultjson.Gap].
	Gap = resultjson.Gap
	// Normalized is [resultjson.Normalized].
	Normalized = resultjson.Normalized
)

// The states of processes and contexts.
const (
	Running = resultjson.Running
	Ended   = resultjson.Ended
)
