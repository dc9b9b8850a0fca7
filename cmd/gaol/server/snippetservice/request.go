package snippetservice

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/policy"
	"gaol/runtime/requestjson"
	"gaol/runtime/snippets"
)

// Request is a snippet to run.
type Request requestjson.SnippetRunIn

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

// usesHost reports whether the request sets what only a client may set that is trusted like root.
func (r *Request) usesHost() bool { return r.NodeModules != "" || r.AdapterCode != "" || r.NoLint }

// checkHost checks what usesHost is about.
func (s *Service) checkHost(r *Request) error {
	if !s.service.Trusted() {
		return &service.Error{Code: service.Forbidden, Err: errors.New("nodeModules, adapterCode and noLint: only a server of one program allows them")}
	}
	if r.NodeModules != "" {
		if info, err := os.Stat(r.NodeModules); !filepath.IsAbs(r.NodeModules) || err != nil || !info.IsDir() {
			return service.Refuse(service.Invalid, "nodeModules %q: want the absolute path of a folder", r.NodeModules)
		}
	}
	return nil
}

// adapter returns the adapter that a request names.
func (r *Request) adapter(set *settings.Settings) (snippets.Adapter, error) {
	if r.AdapterCode != "" {
		return snippets.Adapter{Name: r.Adapter, Code: r.AdapterCode}, nil
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
