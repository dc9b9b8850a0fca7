package service

import (
	"context"

	"gaol/cmd/gaol/server/audit"
	"gaol/cmd/gaol/server/metrics"
	"gaol/cmd/gaol/server/quota"
	"gaol/runtime"
)

// The kinds of runs, for metrics and errors.
const (
	kindRun      = "run"
	kindExec     = "exec"
	kindCommand  = "command"
	kindEvaluate = "evaluate"
)

// doing is what the service does for a kind of run, for errors.
var doing = map[string]string{
	kindRun: "run a program", kindExec: "run a program", kindCommand: "run a command", kindEvaluate: "evaluate a snippet",
}

// addMetrics connects the service with its metrics.
func (s *Service) addMetrics(m *metrics.Metrics) {
	if m == nil {
		m = metrics.New()
	}
	s.metrics = m
	s.quotas.Observe(quota.Observer{Refused: m.Refused, Queued: m.Queued})
	m.Register(&metrics.Usage{Tenants: func() (named []string, all []quota.Usage) {
		for name := range s.Settings().Tenants {
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

// recordEvaluation is recordRun for snippets.
func (s *Service) recordEvaluation(ctx context.Context, e *runtime.Evaluation, err error) {
	audit.Of(ctx).SetEvaluation(e)
	if e != nil {
		s.metrics.Run(kindEvaluate, e.Cause, e.Duration)
	} else if err != nil {
		s.metrics.RunError(kindEvaluate)
	}
}
