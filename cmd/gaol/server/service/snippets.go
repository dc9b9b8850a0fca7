package service

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/policy"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
	"gaol/runtime/snippets"
	"gaol/runtime/snippets/lint"
)

// RunSnippet runs a snippet in a new sandbox. An input that breaks a rule of package snippets is not an error: the output
// reports it. If ctx ends the snippet, the error is beside the output so far.
func (s *Service) RunSnippet(ctx context.Context, c *Call, r *requestjson.SnippetRunIn) (*resultjson.SnippetResult, error) {
	in, k, err := s.checkSnippet(c.Tenant, r)
	if err != nil {
		return nil, err
	}
	audit.Of(ctx).SetCode(snippetCode(r), k.preset)
	if c.To != nil {
		var wait func()
		in.OnLog, wait = sendLines(c.To)
		defer wait()
	}
	release, err := admitSandbox(ctx, s.Account(c.Tenant), snippets.Limits())
	if err != nil {
		return nil, err
	}
	defer release()
	var out *snippets.Output
	err = s.runners.use(k, k.tenant, func() (*snippets.Runner, error) { return snippets.New(s.runnerOptions(c.Tenant, k)) }, func(r *snippets.Runner) (err error) {
		out, err = r.Run(ctx, in)
		return err
	})
	if !is[*snippets.InputError](err) {
		s.recordSnippet(ctx, out, err)
	} else if out != nil {
		err = nil
	}
	if out == nil {
		return nil, err
	}
	return resultjson.NewSnippetResult(out), err
}

// admitSandbox reserves a sandbox with these limits, and waits for the turn of a run in it. The caller calls release after
// both.
func admitSandbox(ctx context.Context, account *quota.Account, l runtime.Limits) (release func(), err error) {
	held, err := account.Reserve(quota.Limits{Sandboxes: 1, Disk: l.Disk, Files: l.Files})
	if err != nil {
		return nil, err
	}
	done, err := account.Admit(ctx, l.Memory, l.CPUs)
	if err != nil {
		held.Release()
		return nil, err
	}
	return func() { done(); held.Release() }, nil
}

// sendLines returns a function that sends a line as an event. It has room for all lines of a snippet, so that a slow client
// does not occupy a sandbox. The caller calls wait after the last line.
func sendLines(to Sink) (send func(string), wait func()) {
	queue, done := make(chan string, snippets.MaxLogs+1), make(chan struct{})
	go func() {
		defer close(done)
		for line := range queue {
			_ = to(Event{Name: EventLog, Data: resultjson.SnippetLog{Line: line}}) // it cancels the request if the client has gone
		}
	}()
	return func(line string) { queue <- line }, func() { close(queue); <-done }
}

// recordSnippet adds the end of a snippet to the audit log and the metrics.
func (s *Service) recordSnippet(ctx context.Context, out *snippets.Output, err error) {
	if out == nil {
		s.record(ctx, KindSnippet, nil, err)
		return
	}
	e := &runtime.Evaluation{Denials: out.Denials, Usage: out.Usage, Duration: time.Duration(out.DurationMs * float64(time.Millisecond))}
	switch {
	case err != nil:
		e.Cause = runtime.CauseCanceled
	case out.TimedOut:
		e.Cause = runtime.CauseTimeout
	}
	s.record(ctx, KindSnippet, e, nil)
}

// runnerKey identifies a runner: snippets with the same key share it.
type runnerKey struct {
	settings                   *settings.Settings
	tenant, preset             string
	adapter, code, nodeModules string
	noLint                     bool
	rules                      *lint.Rules // nil: the adapter's
}

// newRunnerKey returns the key of snippets with these settings.
func newRunnerKey(set *settings.Settings, tenant, preset string, adapter snippets.Adapter) runnerKey {
	return runnerKey{
		settings: set, tenant: tenant, preset: preset, adapter: adapter.Name, code: adapter.Code,
		nodeModules: set.Snippets.NodeModules, noLint: set.Snippets.NoLint, rules: set.Snippets.Rules(adapter.Name),
	}
}

func (s *Service) runnerOptions(t *tenant.Tenant, k runnerKey) snippets.Options {
	o := s.base(t)
	set := s.settings.Load()
	isolate(&o, set.Allowed[0])
	var network string
	o.Permissions, network = restrict(set.Permissions.Over(policy.Default()), k.preset)
	return snippets.Options{
		Adapter: snippets.Adapter{Name: k.adapter, Code: k.code}, NodeModules: k.nodeModules, NoLint: k.noLint, Rules: k.rules,
		Network: network, Sandbox: o, Cache: filepath.Join(s.cache, "packages"),
	}
}

// The permission presets.
const (
	presetStrict  = "strict"
	presetDefault = "default"
	presetPublic  = "public"
)

// presets are the presets that the settings allow, the strictest first.
func presets(set *settings.Settings) []string {
	list := []string{presetStrict, presetDefault}
	if set.Snippets.Network == presetPublic {
		list = append(list, presetPublic)
	}
	return list
}

// restrict returns the permissions of a preset, bounded by base.
func restrict(base policy.Permissions, preset string) (p policy.Permissions, network string) {
	p = base.Clone()
	p.Network = policy.Scope{} // which network decides
	switch preset {
	case presetStrict:
		// The last rule decides.
		p.FS.Rules = append(p.FS.Rules, policy.Rule{Mode: policy.Deny, Operations: writing, Paths: []string{"/**"}})
		p.ChildProcess = policy.Scope{Default: policy.Deny}
	case presetPublic:
		network = presetPublic // see snippets.Options
	}
	return p, network
}

// writing are the operations that change files.
var writing = []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}

// checkSnippet returns the input for the SDK, and the key of the runner.
func (s *Service) checkSnippet(t *tenant.Tenant, r *requestjson.SnippetRunIn) (in snippets.Input, k runnerKey, err error) {
	set := s.settings.Load()
	ofHost := r.NodeModules != "" || r.AdapterCode != "" || r.NoLint
	if ofHost && !s.trusted {
		return in, k, Refuse(Forbidden, "nodeModules, adapterCode and noLint: only a server of one program allows them")
	}
	if r.NodeModules != "" {
		if info, err := os.Stat(r.NodeModules); !filepath.IsAbs(r.NodeModules) || err != nil || !info.IsDir() {
			return in, k, Refuse(Invalid, "nodeModules %q: want the absolute path of a folder", r.NodeModules)
		}
	}
	if in, err = SnippetInput(r, maxSnippetTimeout(set)); err != nil {
		return in, k, err
	}
	adapter, err := findAdapter(set, r)
	if err != nil {
		return in, k, err
	}
	preset := cmp.Or(r.Permissions, presetDefault)
	if list := presets(set); !slices.Contains(list, preset) {
		return in, k, Refuse(Invalid, "permissions %.64q: the server has %s", preset, strings.Join(list, ", "))
	}
	k = newRunnerKey(set, t.Name, preset, adapter)
	if ofHost {
		k.nodeModules, k.noLint = r.NodeModules, r.NoLint
	}
	return in, k, nil
}

// ErrSnippetSource is the error of a snippet without exactly one of source and files.
var ErrSnippetSource = Refuse(Invalid, "want exactly one of source and files")

// SnippetInput returns a request as the SDK has it, with a timeout of at most most.
func SnippetInput(r *requestjson.SnippetRunIn, most time.Duration) (in snippets.Input, err error) {
	if (r.Source == nil) == (r.Files == nil) {
		return in, ErrSnippetSource
	}
	in = snippets.Input{Files: r.Files, Timeout: snippets.DefaultTimeout}
	if r.Source != nil {
		in.Files = []snippets.File{{Path: snippets.EntryPath, Source: *r.Source}}
	}
	if r.TimeoutMs != nil {
		in.Timeout = max(snippets.MinTimeout, milliseconds(min(*r.TimeoutMs, math.MaxInt32)))
	}
	in.Timeout = min(in.Timeout, most)
	return in, nil
}

// snippetCode returns the text whose hash is in the audit log.
func snippetCode(r *requestjson.SnippetRunIn) string {
	if r.Source != nil {
		return *r.Source
	}
	text, _ := json.Marshal(r.Files) // strings have JSON
	return string(text)
}

// findAdapter returns the adapter that a request names.
func findAdapter(set *settings.Settings, r *requestjson.SnippetRunIn) (snippets.Adapter, error) {
	if r.AdapterCode != "" {
		return snippets.Adapter{Name: r.Adapter, Code: r.AdapterCode}, nil
	}
	all := set.Snippets.Adapters
	for _, a := range all {
		if r.Adapter == "" || a.Name == r.Adapter { // the first one is the default
			return a, nil
		}
	}
	return snippets.Adapter{}, Refuse(Invalid, "adapter %.64q: the server has %s", r.Adapter, strings.Join(adapterNames(all), ", "))
}

func adapterNames(all []snippets.Adapter) (list []string) {
	for _, a := range all {
		list = append(list, a.Name)
	}
	return list
}

// SnippetInfo describes the snippets that a server runs.
type SnippetInfo struct {
	Adapters    []string     `json:"adapters" doc:"The names of adapters, the default one first."`
	Adapter     string       `json:"adapter" doc:"The default one."`
	Permissions []string     `json:"permissions" doc:"The names of permission presets."`
	Anonymous   bool         `json:"anonymous" doc:"Callers need no token to run snippets."`
	MaxBytes    int          `json:"maxBytes" doc:"Of all files together."`
	MaxFiles    int          `json:"maxFiles"`
	TimeoutMs   SnippetTimes `json:"timeoutMs"`
}

// SnippetTimes are time limits in milliseconds.
type SnippetTimes struct {
	Default int64 `json:"default"`
	Min     int64 `json:"min"`
	Max     int64 `json:"max"`
}

// DescribeSnippets describes the snippets that the server runs.
func (s *Service) DescribeSnippets(context.Context, *Call, *struct{}) (*SnippetInfo, error) {
	set := s.settings.Load()
	all := adapterNames(set.Snippets.Adapters)
	most := maxSnippetTimeout(set)
	return &SnippetInfo{
		Adapters: all, Adapter: all[0], Permissions: presets(set), Anonymous: set.Snippets.Anonymous != nil,
		MaxBytes: snippets.MaxBytes, MaxFiles: snippets.MaxFiles,
		TimeoutMs: SnippetTimes{min(snippets.DefaultTimeout, most).Milliseconds(), min(snippets.MinTimeout, most).Milliseconds(), most.Milliseconds()},
	}, nil
}

// maxSnippetTimeout is the most that a snippet may ask for.
func maxSnippetTimeout(set *settings.Settings) time.Duration {
	return min(snippets.MaxTimeout, milliseconds(set.RunTimeoutMs))
}
