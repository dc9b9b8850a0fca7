package service

import (
	"context"
	"errors"

	"gaol/cmd/gaol/server/tenant"
	"gaol/runtime"
	"gaol/runtime/resultjson"
)

// Normalize turns code that a model wrote into an ES module, as [runtime.Normalize] does. It counts as a
// run, because it takes the server's processor time.
func (s *Service) Normalize(ctx context.Context, t *tenant.Tenant, code string) (*Normalized, error) {
	release, err := s.Account(t).Admit(ctx, 0, 0)
	if err != nil {
		return nil, convert(err)
	}
	defer release()
	module, err := runtime.Normalize(code)
	if failed, ok := errors.AsType[*runtime.GuestError](err); ok {
		return &Normalized{Error: &resultjson.GuestError{Name: failed.Name, Message: failed.Message, Stack: failed.Stack, Frame: &failed.Frame}}, nil
	}
	return &Normalized{Code: module}, convert(err)
}
