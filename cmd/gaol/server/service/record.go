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

// Record adds the end of a run to the audit log and the metrics. Without a result and an evaluation, it has failed.
func (s *Service) Record(ctx context.Context, kind string, exit runtime.ExitEvent) {
	audit.Of(ctx).SetResult(exit.Result)
	audit.Of(ctx).SetEvaluation(exit.Evaluation)
	switch {
	case exit.Result != nil:
		s.metrics.Run(kind, exit.Result.Cause, exit.Result.Duration)
	case exit.Evaluation != nil:
		s.metrics.Run(kind, exit.Evaluation.Cause, exit.Evaluation.Duration)
	case exit.Err != nil:
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
