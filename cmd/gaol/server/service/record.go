package service

import (
	"context"
	"encoding/json"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/quota"
	"gaol/runtime"
)

// The kinds of runs, for metrics and errors.
const (
	KindRun      = "run"
	KindExec     = "exec"
	KindCommand  = "command"
	KindEvaluate = "evaluate"
	KindProcess  = "process" // of Spawn
	KindCell     = "cell"    // of a context
	KindSnippet  = "snippet" // of package snippets
)

// doing names the service's action for a kind of run, for errors.
var doing = map[string]string{
	KindRun: "run a program", KindExec: "run a program", KindCommand: "run a command", KindEvaluate: "evaluate a snippet",
}

// addMetrics connects the service with its metrics.
func (s *Service) addMetrics(m *Metrics) {
	if m == nil {
		m = NewMetrics()
	}
	s.metrics = m
	s.quotas.Observe(quota.Observer{Refused: m.Refused, Queued: m.Queued})
	m.Register(&UsageMetrics{Tenants: func() (named []string, all []quota.Usage) {
		for name := range s.Settings().Limits() {
			named = append(named, name)
		}
		return named, s.Usage()
	}})
}

// recordRun adds the end of a run to the audit log and the metrics. Both may be nil: res, and err.
func (s *Service) recordRun(ctx context.Context, kind string, res *runtime.Result, err error) {
	audit.Of(ctx).SetResult(res)
	if res != nil {
		s.metrics.Run(kind, res.Cause, res.Duration)
	} else if err != nil {
		s.metrics.RunError(kind)
	}
}

// recordCode adds a program or snippet, and its permissions, to the audit log.
func recordCode(ctx context.Context, code string, permissions json.RawMessage) {
	audit.Of(ctx).SetCode(code)
	audit.Of(ctx).SetPermissions(permissions)
}

// recordCommand adds a command, and its permissions, to the audit log.
func recordCommand(ctx context.Context, name string, args []string, permissions json.RawMessage) {
	audit.Of(ctx).SetCommand(name, args)
	audit.Of(ctx).SetPermissions(permissions)
}

// RecordEvaluation adds the end of an evaluation to the audit log and the metrics. The evaluation is nil if it
// failed.
func (s *Service) RecordEvaluation(ctx context.Context, kind string, e *runtime.Evaluation, err error) {
	audit.Of(ctx).SetEvaluation(e)
	if e != nil {
		s.metrics.Run(kind, e.Cause, e.Duration)
	} else if err != nil {
		s.metrics.RunError(kind)
	}
}
