package service

import (
	"context"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// Batch keeps the batch runs of tenants: see package batch. A batch run of another tenant does not exist.
type Batch interface {
	Submit(ctx context.Context, t *tenant.Tenant, r *requestjson.SubmitRequest) (*resultjson.BatchRun, error)
	Get(ctx context.Context, t *tenant.Tenant, key string) (*resultjson.BatchRun, error)
	Cancel(ctx context.Context, t *tenant.Tenant, key string) (*resultjson.BatchRun, error)

	// Follow calls changed with the batch run, and again each time that its state has changed, until it is done, changed
	// returns an error, or ctx ends.
	Follow(ctx context.Context, t *tenant.Tenant, key string, changed func(*resultjson.BatchRun) error) error
}

// WaitBatchRun waits until a batch run is done, or a timeout.
func (s *Service) WaitBatchRun(ctx context.Context, c *Call, in *requestjson.WaitBatchIn) (run *resultjson.BatchRun, err error) {
	late, cancel := waitContext(ctx, in.TimeoutMs)
	defer cancel()
	err = s.Batch.Follow(late, c.Tenant, in.Key, func(now *resultjson.BatchRun) error {
		run = now
		return nil
	})
	if late.Err() != nil && ctx.Err() == nil { // also before the first state
		return s.Batch.Get(ctx, c.Tenant, in.Key)
	}
	return run, err
}

// FollowBatchRun sends the states of a batch run until it is done.
func (s *Service) FollowBatchRun(ctx context.Context, c *Call, in *requestjson.InBatch) (None, error) {
	return None{}, s.Batch.Follow(ctx, c.Tenant, in.Key, func(run *resultjson.BatchRun) error {
		if c.To == nil {
			return nil
		}
		return c.To(Event{Name: EventState, Data: run})
	})
}
