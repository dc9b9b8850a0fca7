package requestjson

import (
	"encoding/json"

	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/snippets"
)

// Start describes how a program starts.
type Start struct {
	Permissions policy.Permissions `json:"permissions,omitzero" doc:"The permissions of the run, by scope: fs, network, childProcess, process, env. In a sandbox they can only restrict it further."`
	Args        []string           `json:"args,omitempty" maxItems:"4096" doc:"Its arguments: of a Node program, process.argv from its third element on."`
	Env         map[string]string  `json:"env,omitempty" doc:"Environment variables."`
	Cwd         string             `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory. By default /workspace, or that of the sandbox."`
	Stdin       string             `json:"stdin,omitempty" maxLength:"16777216" doc:"Standard input; empty by default."`
	Timeout
}

// Timeout is the time limit of a run.
type Timeout struct {
	Ms  int64 `json:"timeoutMs,omitempty" minimum:"0" doc:"Wall-clock time limit. By default 30,000."`
	Max bool  `json:"maxTimeout,omitempty" doc:"Instead of timeoutMs: the longest that the server allows."`
}

// Program is code to run and how to start it.
type Program struct {
	Code   string `json:"code" maxLength:"4194304" doc:"JavaScript, TypeScript or JSX."`
	Name   string `json:"name,omitempty" maxLength:"4095" doc:"The program's file name in its working directory, or an absolute path, from whose folder imports begin. Its extension selects the language: .mjs, .cjs, .ts, .tsx, ..."`
	Format string `json:"format,omitempty" enum:"auto,esm,cjs,detect" doc:"The module format; by default, auto, it depends on the name and the syntax. detect is auto for the text of a file: CommonJS unless the syntax requires ES modules."`
	Start
}

// Command is a program of the image and how to start it.
type Command struct {
	Command string `json:"command" pattern:"^[^\\x00]+$" minLength:"1" maxLength:"4095" doc:"A program of the image, or the path of one in the sandbox."`
	Start
}

// Cell is code to evaluate.
type Cell struct {
	Code         string                     `json:"code" maxLength:"4194304" doc:"A snippet as models write it: JavaScript, TypeScript or JSX, with or without Markdown's fences. In a context it sees the declarations of earlier cells."`
	Globals      map[string]json.RawMessage `json:"globals,omitempty" doc:"Variables of the snippet."`
	MaxOutput    int64                      `json:"maxOutput,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of JSON that its value may have. By default 1 MiB."`
	MaxLogs      int                        `json:"maxLogs,omitempty" minimum:"0" maximum:"10000" doc:"Lines of console to keep. By default 100."`
	MaxLogLength int                        `json:"maxLogLength,omitempty" minimum:"0" maximum:"100000" doc:"Characters of one line. By default 1,000."`
	Form         runtime.ResultForm         `json:"form,omitempty" enum:"text,colors" doc:"Return the value as a string, as Node's REPL prints it. By default as JSON."`
	Timeout
}

// Snippet is code to evaluate in a new process.
type Snippet struct {
	Cell
	Permissions policy.Permissions `json:"permissions,omitzero" doc:"As for a run."`
	Env         map[string]string  `json:"env,omitempty" doc:"Environment variables."`
	Cwd         string             `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory."`
}

// ContextRequest is a context to create.
type ContextRequest struct {
	Globals       map[string]json.RawMessage `json:"globals,omitempty" doc:"Variables of all cells."`
	MaxIdle       bool                       `json:"maxIdleTimeout,omitempty" doc:"Instead of idleTimeoutMs: the longest that the server allows."`
	Permissions   policy.Permissions         `json:"permissions,omitzero" doc:"As for a run."`
	Env           map[string]string          `json:"env,omitempty" doc:"Environment variables."`
	Cwd           string                     `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory."`
	IdleTimeoutMs int64                      `json:"idleTimeoutMs,omitempty" minimum:"0" doc:"How long it lives without a cell. By default 600,000. It ends with its sandbox, too."`
	LastValue     bool                       `json:"lastValue,omitempty" doc:"Keep the value of the last cell in the variable _, as Node's REPL does."`
}

// ProcessRequest is a process to start: a program, or a command.
type ProcessRequest struct {
	Code        string             `json:"code,omitempty" maxLength:"4194304" doc:"JavaScript, TypeScript or JSX. Either this or command."`
	Name        string             `json:"name,omitempty" maxLength:"4095" doc:"The program's file name, as for a run."`
	Format      string             `json:"format,omitempty" enum:"auto,esm,cjs,detect" doc:"The module format, as for a run."`
	Command     string             `json:"command,omitempty" pattern:"^[^\\x00]*$" maxLength:"4095" doc:"A program of the image, or the path of one in the sandbox."`
	Permissions policy.Permissions `json:"permissions,omitzero" doc:"As for a run."`
	Args        []string           `json:"args,omitempty" maxItems:"4096" doc:"Its arguments."`
	Env         map[string]string  `json:"env,omitempty" doc:"Environment variables."`
	Cwd         string             `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory."`
	TimeoutMs   int64              `json:"timeoutMs,omitempty" minimum:"0" doc:"Wall-clock time limit. By default the process lives as long as its sandbox."`
	Terminal    *runtime.Terminal  `json:"terminal,omitempty" doc:"Gives the process a terminal instead of pipes. All output is then stdout."`
	WhenFull    string             `json:"whenFull,omitempty" enum:"drop,wait" doc:"What happens while readers are slow or absent: the oldest events are dropped once there is more than 1 MiB of them (the default), or the process waits while no reader has got the last 512 KiB."`
}

// SubmitRequest is a batch run to submit: a program, or a command, in a new sandbox.
type SubmitRequest struct {
	Key     string `json:"idempotencyKey,omitempty" pattern:"^[A-Za-z0-9][A-Za-z0-9._:~@+=-]*$" maxLength:"255" doc:"Names the batch run. By HTTP, the header Idempotency-Key has it. A repetition with the same key and request is the same batch run. By default a random key."`
	Code    string `json:"code,omitempty" maxLength:"4194304" doc:"JavaScript, TypeScript or JSX. Either this or command."`
	Name    string `json:"name,omitempty" maxLength:"4095" doc:"The program's file name, as for a run."`
	Format  string `json:"format,omitempty" enum:"auto,esm,cjs,detect" doc:"The module format, as for a run."`
	Command string `json:"command,omitempty" pattern:"^[^\\x00]*$" maxLength:"4095" doc:"A program of the image, or the path of one in the sandbox."`
	Start
	Tree
}

// Input is what to write to a process's standard input: text or bytes.
type Input struct {
	Text  string `json:"text,omitempty" maxLength:"1048576" doc:"Text to write, of at most 1 MiB."`
	Bytes []byte `json:"bytes,omitempty" maxLength:"1398104" doc:"Bytes to write, in base64, instead of text: at most 1 MiB."`
	Close bool   `json:"close,omitempty" doc:"Close the input afterwards. On a terminal this types Ctrl-D."`
}

// SnippetRunIn is the input of runSnippet. Exactly one of Source and Files is present.
type SnippetRunIn struct {
	Source      *string         `json:"source,omitempty" doc:"The text of src/main.ts, as the only file."`
	Files       []snippets.File `json:"files,omitempty" doc:"1 to 10 files, of 200,000 bytes of UTF-8 together. One is src/main.ts, which runs; the others are imported by it."`
	TimeoutMs   *int64          `json:"timeoutMs,omitempty" doc:"Wall-clock time limit: 100 to 10,000, to which other values are rounded. By default 5,000."`
	Adapter     string          `json:"adapter,omitempty" maxLength:"64" doc:"What reads the state of a framework: one of the names that GET /api/sandbox lists."`
	Permissions string          `json:"permissions,omitempty" enum:"strict,default,public" doc:"strict: nothing but compute and read; default: everything inside the sandbox, and no network; public: default with the public internet, if the server allows that."`
	NodeModules string          `json:"nodeModules,omitempty" maxLength:"4095" hidden:"true" doc:"The absolute path of the folder with the packages that the snippet may import. Only a server of one program allows it, as the next two."`
	AdapterCode string          `json:"adapterCode,omitempty" maxLength:"1048576" hidden:"true" doc:"The ES module of an adapter, whose name is adapter."`
	NoLint      bool            `json:"noLint,omitempty" hidden:"true" doc:"Do not check the adapter's lint rules."`
}
