package resultjson

import (
	"time"

	"gaol/internal/strictjson"
	"gaol/runtime"
	"gaol/runtime/snippets"
)

// ProcessState is whether a process is active.
type ProcessState string

// The states of processes and contexts.
const (
	Running ProcessState = "running"
	Ended   ProcessState = "ended"
)

// BatchState is the state of a batch run.
type BatchState string

// The states of a batch run. It returns from BatchRunning to BatchQueued if its machine is lost.
const (
	BatchQueued  BatchState = "queued"
	BatchRunning BatchState = "running"
	BatchDone    BatchState = "done"
)

// BatchRun describes a batch run. One that is done has either a result or an error, for an hour.
type BatchRun struct {
	Key       string          `json:"key" doc:"Its name in other requests."`
	State     BatchState      `json:"state" enum:"queued,running,done"`
	Submitted time.Time       `json:"submitted"`
	Attempts  int             `json:"attempts,omitempty" doc:"How often it has begun."`
	Done      *time.Time      `json:"done,omitempty" doc:"When it was done."`
	Result    *runtime.Result `json:"result,omitempty" doc:"How it ended, as for a run. Its cause can also be lost: it has begun 20 times, and no machine has completed it."`
	Error     *BatchError     `json:"error,omitempty" doc:"Why it could not be run."`
}

// BatchError is the error of a batch run.
type BatchError struct {
	Code   string `json:"code" doc:"As in the response of a request that fails."`
	Status int    `json:"status" doc:"The HTTP status of such a response."`
	Detail string `json:"detail"`
}

// SandboxInfo describes a sandbox.
type SandboxInfo struct {
	ID          string    `json:"id" doc:"Its name in other requests."`
	Created     time.Time `json:"created"`
	Expires     time.Time `json:"expires" doc:"When it is deleted, unless it is used before."`
	LifetimeEnd time.Time `json:"lifetimeEnd" doc:"When it is deleted at the latest."`
	Isolation   string    `json:"isolation" doc:"What confines it, as in the request."`
	Paused      bool      `json:"paused,omitempty" doc:"Its processes are stopped until it is resumed."`
	Processes   int       `json:"processes" doc:"Active runs, processes and contexts."`
	Missing     []string  `json:"missing,omitempty" doc:"Rules that the server's kernel does not enforce."`
}

// ProcessInfo describes a process.
type ProcessInfo struct {
	ID          string          `json:"id" doc:"Its name in other requests. It is not used again."`
	PID         int             `json:"pid" doc:"Its process ID inside the sandbox, which may be used again."`
	State       ProcessState    `json:"state" enum:"running,ended"`
	Program     string          `json:"program" doc:"The command, or the name of the program."`
	Args        []string        `json:"args" doc:"Its arguments, unless they have more than 4 KiB."`
	Started     time.Time       `json:"started"`
	Terminal    bool            `json:"terminal" doc:"Whether it runs on a terminal."`
	Usage       ProcessUsage    `json:"usage"`
	LastEventID uint64          `json:"lastEventId" doc:"The number of its newest event; 0 if there is none."`
	Ended       *time.Time      `json:"ended,omitempty" doc:"When it ended."`
	Result      *runtime.Result `json:"result,omitempty" doc:"How it ended, without its output, which the events have."`
	Failure     string          `json:"failure,omitempty" doc:"Why there is no result although it has ended."`
}

// ProcessUsage is the usage of a process.
type ProcessUsage struct {
	UsageFields
	Memory int64 `json:"memoryBytes" doc:"Memory in use now; 0 after the end."`
}

// UsageFields are the fields of ProcessUsage that a run has, too.
type UsageFields runtime.Usage

type plainProcessUsage ProcessUsage // without methods

// NewProcessUsage converts the usage of a process.
func NewProcessUsage(u runtime.Usage) ProcessUsage { return ProcessUsage{UsageFields(u), u.Memory} }

// MarshalJSON implements [json.Marshaler].
func (u ProcessUsage) MarshalJSON() ([]byte, error) {
	return strictjson.MarshalResult(plainProcessUsage(u))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (u *ProcessUsage) UnmarshalJSON(text []byte) error {
	return strictjson.UnmarshalResult(text, (*plainProcessUsage)(u))
}

// ContextInfo describes a context.
type ContextInfo struct {
	ID      string       `json:"id" doc:"Its name in other requests."`
	State   ProcessState `json:"state" enum:"running,ended"`
	Created time.Time    `json:"created"`
	Cells   int          `json:"cells" doc:"Cells that are evaluated or wait for their turn."`
	Reason  string       `json:"reason,omitempty" doc:"Why it has ended."`
	Exit    *int         `json:"exitCode,omitempty" doc:"The exit code, if it has exited."`
}

// Completion are the names that can complete the last name of a line.
type Completion struct {
	Prefix string   `json:"prefix" doc:"The end of the line that all names begin with."`
	Names  []string `json:"names" doc:"At most 1,000, in alphabetical order. They come from the guest."`
}

// SnapshotInfo describes a snapshot. It lacks the time of creation: equal snapshots of several
// tenants are one in the store.
type SnapshotInfo struct {
	Name string `json:"name"`
	Size int64  `json:"size" doc:"Bytes of its files."`
}

// ImageInfo describes an image that its tenant has built.
type ImageInfo struct {
	Name string `json:"name"`
	Size int64  `json:"size" doc:"Bytes of all its files, including files that it shares with its base."`
}

// MissingNodes is embedded in lists that all nodes of a fleet contribute to.
type MissingNodes struct {
	Missing []string `json:"missing,omitzero" doc:"Nodes of a fleet that did not reply in time: the list lacks their part. Absent if it is complete."`
}

// Listener is an address in a sandbox on which a guest listens.
type Listener struct {
	Address string `json:"address" doc:"Listeners on other addresses than localhost's and \"all\" cannot be reached."`
	Port    uint16 `json:"port"`
}

// PortState is whether a guest listens on a port.
type PortState struct {
	Listening bool `json:"listening" doc:"False if the time was over first."`
}

// SandboxUsage counts the resources that a sandbox uses.
type SandboxUsage struct {
	runtime.Resources
	ExitedProcesses int `json:"exitedProcesses" doc:"Processes and contexts of the HTTP API that have ended and are kept."`
}

// Gap reports that events are gone because the process has printed more than is kept for readers that
// are slow or absent.
type Gap struct {
	First uint64 `json:"first" doc:"The number of the first event that is gone."`
	Last  uint64 `json:"last" doc:"The number of the last event that is gone."`
}

// Normalized is the result of Normalize.
type Normalized struct {
	Code  string              `json:"code,omitempty"`
	Error *runtime.GuestError `json:"error"`
}

// SnippetResult is the output of a snippet, with a report of its run.
type SnippetResult struct {
	*snippets.Output
	Problems []snippets.Problem `json:"problems"`
	Denials  []runtime.Denial   `json:"denials"`
	Usage    runtime.Usage      `json:"usage"`
}

// NewSnippetResult converts an output.
func NewSnippetResult(o *snippets.Output) *SnippetResult {
	return &SnippetResult{o, append([]snippets.Problem{}, o.Problems...), append([]runtime.Denial{}, o.Denials...), o.Usage} // lists even if empty
}

// SnippetLog is a line that a snippet has printed.
type SnippetLog struct {
	Line string `json:"line" doc:"Such as [log] hello."`
}
