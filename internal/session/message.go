package session

import "encoding/json"

// Request is the body of a request.
type Request struct {
	Method string          `json:"method"`           // the name of an operation
	Params json.RawMessage `json:"params,omitempty"` // its input, an object

	// Stdin says that standard input follows in frames. Operations that carry data always have it.
	Stdin bool `json:"stdin,omitempty"`

	// Events asks for events, which have the output of a run, and makes a request that starts a
	// process or a context last until its end.
	Events bool `json:"events,omitempty"`

	// Host is a [Host], if the client has functions for programs.
	Host json.RawMessage `json:"host,omitempty"`

	// Detached makes a sandbox outlive the session.
	Detached bool `json:"detached,omitempty"`
}

// Host declares the functions of a client that programs can call.
type Host struct {
	Functions []Function `json:"functions,omitempty" maxItems:"1024" doc:"Functions in the global scope, or in objects of it."`
	Commands  []Command  `json:"commands,omitzero" maxItems:"1024" doc:"Programs of the sandbox. With an empty list, addCommands can add some."`
	Calls     CallLimits `json:"calls,omitzero"`
}

// Event is the body of an event. Output is not one: it has frames of its own.
type Event struct {
	Event string          `json:"event"` // its name
	Data  json.RawMessage `json:"data"`
}

// Problem is the body of an error. It has the fields of the HTTP API's problems (RFC 9457).
type Problem struct {
	Status       int             `json:"status"`
	Code         string          `json:"code"`
	Detail       string          `json:"detail,omitempty"`
	RetryAfterMs int64           `json:"retryAfterMs,omitempty"` // when the request may succeed
	Errors       json.RawMessage `json:"errors,omitempty"`       // which fields are invalid
}

// Failure is the body of a failure: the error of a host function, as the guest sees it.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// Function declares a host function of the client.
type Function struct {
	ID     uint32          `json:"id" minimum:"1" doc:"The number of the function in calls. The client chooses it."`
	Path   []string        `json:"path" minItems:"1" maxItems:"16" doc:"Where programs find the function: the name of a global, and names inside it."`
	Async  bool            `json:"async,omitempty" doc:"In programs, the function returns a promise. By default a call blocks the program until its answer."`
	Schema json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the arguments, as an array. The server rejects calls that do not match."`
}

// Command declares a program of the sandbox that calls the client.
type Command struct {
	ID    uint32 `json:"id" minimum:"1" doc:"The number of the command in calls, as for functions."`
	Name  string `json:"name" pattern:"^[a-z0-9][a-z0-9._-]*$" maxLength:"64" doc:"The name of the program."`
	Stdin bool   `json:"stdin,omitempty" doc:"Read the program's standard input until its end, and send it with the call."`
}

// CommandCall is the only argument of a command's call.
type CommandCall struct {
	Args  []string `json:"args"`
	Stdin string   `json:"stdin"`
}

// CommandResult is the answer to a command's call.
type CommandResult struct {
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	ExitCode int    `json:"exitCode"`
}

// CallLimits bound the calls of host functions that a run can make. Zero means the default.
type CallLimits struct {
	Calls      int   `json:"calls,omitempty" minimum:"0" maximum:"1000000" doc:"Calls of one run. By default 100,000, for snippets 50."`
	Concurrent int   `json:"concurrent,omitempty" minimum:"0" maximum:"1024" doc:"Calls of one run at once. By default 16."`
	Arguments  int64 `json:"argumentsBytes,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of the JSON of a call's arguments. By default 1 MiB."`
	Result     int64 `json:"resultBytes,omitempty" minimum:"0" maximum:"16777216" doc:"Bytes of the JSON of a result. By default 4 MiB."`
	TimeoutMs  int64 `json:"timeoutMs,omitempty" minimum:"0" maximum:"3600000" doc:"Wall-clock time of a call. By default 30,000."`
}
