package requestjson

import "encoding/json"

// ProcessRequest is a process to start: a program, or a command.
type ProcessRequest struct {
	Code        string            `json:"code,omitempty" maxLength:"4194304" doc:"JavaScript, TypeScript or JSX. Either this or command."`
	Name        string            `json:"name,omitempty" maxLength:"4095" doc:"The program's file name, as for a run."`
	Format      string            `json:"format,omitempty" enum:"auto,esm,cjs,detect" doc:"The module format, as for a run."`
	Command     string            `json:"command,omitempty" pattern:"^[^\\x00]*$" maxLength:"4095" doc:"A program of the image, or the path of one in the sandbox."`
	Permissions json.RawMessage   `json:"permissions,omitempty" doc:"As for a run."`
	Args        []string          `json:"args,omitempty" maxItems:"4096" doc:"Its arguments."`
	Env         map[string]string `json:"env,omitempty" doc:"Environment variables."`
	Cwd         string            `json:"cwd,omitempty" maxLength:"4095" doc:"The working directory."`
	TimeoutMs   int64             `json:"timeoutMs,omitempty" minimum:"0" doc:"Wall-clock time limit. By default the process lives as long as its sandbox."`
	Terminal    *Terminal         `json:"terminal,omitempty" doc:"Gives the process a terminal instead of pipes. All output is then stdout."`
	WhenFull    string            `json:"whenFull,omitempty" enum:"drop,wait" doc:"What happens while readers are slow or absent: the oldest events are dropped once there is more than 1 MiB of them (the default), or the process waits while no reader has got the last 512 KiB."`
}

// Terminal is the terminal of a process.
type Terminal struct {
	Rows uint16 `json:"rows,omitempty" minimum:"0" maximum:"65535" doc:"Its height in characters. By default 24."`
	Cols uint16 `json:"cols,omitempty" minimum:"0" maximum:"65535" doc:"Its width in characters. By default 80."`
	Term string `json:"term,omitempty" maxLength:"64" doc:"The variable TERM. By default xterm-256color."`
}

// Input is what to write to a process's standard input: text or bytes.
type Input struct {
	Text  string `json:"text,omitempty" maxLength:"1048576" doc:"Text to write, of at most 1 MiB."`
	Bytes []byte `json:"bytes,omitempty" maxLength:"1398104" doc:"Bytes to write, in base64, instead of text: at most 1 MiB."`
	Close bool   `json:"close,omitempty" doc:"Close the input afterwards. On a terminal this types Ctrl-D."`
}
