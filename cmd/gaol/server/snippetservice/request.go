package snippetservice

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
)

// Request is a snippet to run. Exactly one of Source and Files is present.
type Request struct {
	Source      *string         `json:"source,omitempty" doc:"The text of src/main.ts, as the only file."`
	Files       []snippets.File `json:"files,omitempty" doc:"1 to 10 files, of 200,000 bytes of UTF-8 together. One is src/main.ts, which runs; the others are imported by it."`
	TimeoutMs   *int64          `json:"timeoutMs,omitempty" doc:"Wall-clock time limit: 100 to 10,000, to which other values are rounded. By default 5,000."`
	Adapter     string          `json:"adapter,omitempty" maxLength:"64" doc:"What reads the state of a framework: one of the names that GET /api/sandbox lists."`
	Permissions string          `json:"permissions,omitempty" enum:"strict,default,public" doc:"strict: nothing but compute and read; default: everything inside the sandbox, and no network; public: default with the public internet, if the server allows that."`

	// Host is what only a client may set that is trusted like root.
	Host *Host `json:"-"`
}

// Host has options that name files of the host, or have code for the adapter.
type Host struct {
	NodeModules string
	Adapter     snippets.Adapter // zero: Request.Adapter
	NoLint      bool
}

// Result is the output of a run, with its report.
type Result struct {
	*snippets.Output
	Problems []snippets.Problem `json:"problems"`
	Denials  []runtime.Denial   `json:"denials"`
	Usage    resultjson.Usage   `json:"usage"`
}

// NewResult converts an output.
func NewResult(o *snippets.Output) *Result {
	r := &Result{o, o.Problems, o.Denials, resultjson.NewUsage(o.Usage)}
	if r.Problems == nil {
		r.Problems = []snippets.Problem{}
	}
	if r.Denials == nil {
		r.Denials = []runtime.Denial{}
	}
	return r
}

// Log is a line that a snippet has printed.
type Log struct {
	Line string `json:"line" doc:"Such as [log] hello."`
}

// EventLog is the name of the event with a [Log].
const EventLog = service.EventLog

// ErrSource is the error of a request without exactly one of source and files.
var ErrSource = &service.Error{Code: service.Invalid, Err: fmt.Errorf("want exactly one of source and files")}

// Input returns the request as the SDK has it, with a timeout of at most most.
func (r *Request) Input(most time.Duration, onLog func(string)) (in snippets.Input, err error) {
	if (r.Source == nil) == (r.Files == nil) {
		return in, ErrSource
	}
	in = snippets.Input{Files: r.Files, Timeout: min(r.timeout(), most), OnLog: onLog}
	if r.Source != nil {
		in.Files = []snippets.File{{Path: snippets.EntryPath, Source: *r.Source}}
	}
	return in, nil
}

func (r *Request) timeout() time.Duration {
	if r.TimeoutMs == nil {
		return snippets.DefaultTimeout
	}
	asked := max(0, min(*r.TimeoutMs, math.MaxInt32))
	return min(max(time.Duration(asked)*time.Millisecond, snippets.MinTimeout), snippets.MaxTimeout)
}

// code returns the text whose hash is in the audit log.
func (r *Request) code() string {
	if r.Source != nil {
		return *r.Source
	}
	text, _ := json.Marshal(r.Files) // strings have JSON
	return string(text)
}

// adapter returns the adapter that a request names.
func (r *Request) adapter(set *settings.Settings) (snippets.Adapter, error) {
	if r.Host != nil && r.Host.Adapter.Code != "" {
		return r.Host.Adapter, nil
	}
	all := adapters(set)
	if r.Adapter == "" {
		return all[0], nil
	}
	for _, a := range all {
		if a.Name == r.Adapter {
			return a, nil
		}
	}
	return snippets.Adapter{}, &service.Error{Code: service.Invalid, Err: fmt.Errorf("adapter %.64q: the server has %s", r.Adapter, strings.Join(names(all), ", "))}
}

// adapters returns the adapters of the settings. A client that is trusted like root needs no settings.
func adapters(set *settings.Settings) []snippets.Adapter {
	if set.Trusted {
		return []snippets.Adapter{snippets.None, snippets.Directive}
	}
	return set.Snippets.Adapters()
}

func names(all []snippets.Adapter) (list []string) {
	for _, a := range all {
		list = append(list, a.Name)
	}
	return list
}

// preset returns the name of the request's preset.
func (r *Request) preset(set *settings.Settings) (string, error) {
	name := cmp.Or(r.Permissions, presetDefault)
	if list := presetNames(set); !slices.Contains(list, name) {
		return "", &service.Error{Code: service.Invalid, Err: fmt.Errorf("permissions %.64q: the server has %s", name, strings.Join(list, ", "))}
	}
	return name, nil
}

// Info describes the snippet service of a server.
type Info struct {
	Adapters    []string `json:"adapters" doc:"The names of adapters, the default one first."`
	Adapter     string   `json:"adapter" doc:"The default one."`
	Permissions []string `json:"permissions" doc:"The names of permission presets."`
	Anonymous   bool     `json:"anonymous" doc:"Callers need no token to run snippets."`
	MaxBytes    int      `json:"maxBytes" doc:"Of all files together."`
	MaxFiles    int      `json:"maxFiles"`
	TimeoutMs   Times    `json:"timeoutMs"`
}

// Times are time limits in milliseconds.
type Times struct {
	Default int64 `json:"default"`
	Min     int64 `json:"min"`
	Max     int64 `json:"max"`
}

// Info describes the service.
func (s *Service) Info() *Info {
	set := s.service.Settings()
	all := names(adapters(set))
	most := maxTimeout(set)
	return &Info{
		Adapters: all, Adapter: all[0], Permissions: presetNames(set), Anonymous: set.Snippets.Anonymous != nil,
		MaxBytes: snippets.MaxBytes, MaxFiles: snippets.MaxFiles,
		TimeoutMs: Times{min(snippets.DefaultTimeout, most).Milliseconds(), min(snippets.MinTimeout, most).Milliseconds(), most.Milliseconds()},
	}
}

// maxTimeout is the most that a snippet may ask for.
func maxTimeout(set *settings.Settings) time.Duration {
	return min(snippets.MaxTimeout, time.Duration(set.RunTimeoutMs)*time.Millisecond)
}

// The permission presets.
const (
	presetStrict  = "strict"
	presetDefault = "default"
	presetPublic  = "public"
)

// publicNetwork is the network of presetPublic: see snippets.Options.
const publicNetwork = "public"

// presetNames are the presets that the settings allow, the strictest first.
func presetNames(set *settings.Settings) []string {
	list := []string{presetStrict, presetDefault}
	if set.Trusted || set.Snippets.Network == publicNetwork {
		list = append(list, presetPublic)
	}
	return list
}

// restrict returns the permissions of a preset, bounded by base.
func restrict(base policy.Permissions, preset string) (p policy.Permissions, network string) {
	p = base.Clone()
	switch preset {
	case presetStrict:
		// The last rule decides.
		p.FS.Rules = append(slices.Clone(p.FS.Rules), policy.Rule{Mode: policy.Deny, Operations: writing, Paths: []string{"/**"}})
		p.ChildProcess = policy.Scope{Default: policy.Deny}
	case presetPublic:
		network = publicNetwork
	}
	return p, network
}

// writing are the operations that change files.
var writing = []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}
