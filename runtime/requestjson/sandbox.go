package requestjson

import (
	"encoding/json"
	"errors"

	"gaol/policy"
)

// Tree describes the content and the limits of a sandbox.
type Tree struct {
	Image       string            `json:"image,omitempty" maxLength:"255" doc:"The name of an image of yours, or else of the server. By default the server's called default."`
	Snapshot    string            `json:"snapshot,omitempty" maxLength:"255" doc:"A snapshot of yours with the initial content of the sandbox's folders."`
	Files       map[string]string `json:"files,omitempty" doc:"Text files, by path in the sandbox."`
	FileBytes   map[string][]byte `json:"fileBytes,omitempty" doc:"Other files, in base64, by path in the sandbox."`
	Limits      *Limits           `json:"limits,omitempty"`
	Isolation   string            `json:"isolation,omitempty" maxLength:"255" doc:"What confines the sandbox: one of the names that the server allows, such as native or runc. By default the server's choice."`
	ReadOnly    bool              `json:"readOnly,omitempty" doc:"Allow writes to writable mounts only."`
	Hostname    string            `json:"hostname,omitempty" maxLength:"63"`
	Mounts      []Mount           `json:"mounts,omitempty" maxItems:"64" doc:"Folders of the server's machine, if its operator allows that."`
	NodeModules NodeModules       `json:"nodeModules,omitzero"`
	BigInts     bool              `json:"bigInts,omitempty" doc:"Integers of globals and results of functions that a JavaScript number cannot hold become BigInts, and BigInts become integers of JSON. By default both are an error."`
	HostPorts   []int             `json:"hostPorts,omitempty" maxItems:"64" doc:"Ports of the localhost of the server's machine, if its operator allows them, that the sandbox's own localhost leads to. The permissions must allow to connect to them."`
}

// Limits are limits of the runs of a sandbox, and of its tree. Zero means the default.
type Limits struct {
	Memory    int64   `json:"memoryBytes,omitempty" minimum:"0" doc:"Memory of a run. By default 256 MiB. It is rounded up to a multiple of 64 MiB, above 512 MiB of 256 MiB."`
	CPUs      float64 `json:"cpus,omitempty" minimum:"0" doc:"Processors that a run keeps busy. By default 1."`
	CPUTimeMs int64   `json:"cpuTimeMs,omitempty" minimum:"0" doc:"Processor time of a run. By default without limit."`
	Pids      int64   `json:"pids,omitempty" minimum:"0" doc:"Processes and threads of a run. By default 64."`
	OpenFiles int64   `json:"openFiles,omitempty" minimum:"0" doc:"Open files of a process. By default 1,024."`
	Disk      int64   `json:"diskBytes,omitempty" minimum:"0" doc:"Bytes written to the tree. By default 64 MiB."`
	Files     int64   `json:"files,omitempty" minimum:"0" doc:"Files and folders in the tree. By default 65,536."`
	Output    int64   `json:"outputBytes,omitempty" minimum:"0" maximum:"16777216" doc:"Captured bytes of each output. By default 16 MiB."`
	Value     int64   `json:"valueBytes,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of the returned value. By default 16 MiB."`
}

// Mount is a folder of the server's machine.
type Mount struct {
	Source string `json:"source" minLength:"1" maxLength:"4095" doc:"The path below the folder that the operator allows."`
	Target string `json:"target" minLength:"1" maxLength:"4095" doc:"The path in the sandbox."`
	Access string `json:"access,omitempty" enum:"ro,rw,cow" doc:"Read-only (the default), writable if you may write there, or a private copy on write."`
}

// RunRequest is a program with a new sandbox.
type RunRequest struct {
	Program
	Tree
}

// CommandRequest is a program of the image with a new sandbox.
type CommandRequest struct {
	Command
	Tree
}

// EvaluateRequest is a snippet with a new sandbox.
type EvaluateRequest struct {
	Snippet
	Tree
}

// SandboxRequest is a sandbox to create.
type SandboxRequest struct {
	Permissions   policy.Permissions         `json:"permissions,omitzero" doc:"What its runs may do, by scope: fs, network, childProcess, process, env. Each is \"allow\", \"deny\", or an object with a default and rules, such as {\"network\": {\"default\": \"deny\", \"rules\": [{\"mode\": \"allow\", \"patterns\": [\"tcp://registry.npmjs.org:443\"]}]}}. By default everything inside the sandbox, with its own localhost, and no other host."`
	Globals       map[string]json.RawMessage `json:"globals,omitempty" doc:"Variables of all programs."`
	Env           map[string]string          `json:"env,omitempty" doc:"Environment variables of all runs."`
	Cwd           string                     `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory. By default /workspace."`
	IdleTimeoutMs int64                      `json:"idleTimeoutMs,omitempty" minimum:"0" doc:"How long the sandbox lives without use. The default, and the maximum, is the server's."`
	LifetimeMs    int64                      `json:"lifetimeMs,omitempty" minimum:"0" doc:"How long it lives at most. The default, and the maximum, is the server's."`
	Tree
}

// NodeModules is a folder of packages that a sandbox shows: in JSON the host's path as a string, or an
// object.
type NodeModules struct {
	HostPath  string `json:"hostPath" minLength:"1" maxLength:"4095" doc:"A folder of the server's machine, or snapshot:NAME."`
	GuestPath string `json:"guestPath,omitempty" minLength:"1" maxLength:"4095" doc:"Where the sandbox shows it, such as /tmp/node_modules. By default node_modules in the working directory."`
}

// UnmarshalJSON accepts both forms. The schema has been checked before.
func (n *NodeModules) UnmarshalJSON(text []byte) error {
	*n = NodeModules{}
	if json.Unmarshal(text, &n.HostPath) == nil {
		return nil
	}
	type fields NodeModules
	if err := json.Unmarshal(text, (*fields)(n)); err != nil {
		return err
	}
	if n.HostPath == "" && n.GuestPath != "" {
		return errors.New("nodeModules: without a hostPath")
	}
	return nil
}
