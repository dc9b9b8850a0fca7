package service

import (
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime"
)

// isolation returns the isolation that a request names; "" is the server's default.
func (s *Service) isolation(name string) (settings.Isolation, error) {
	i, err := s.settings.Load().FindIsolation(name)
	if err == nil {
		return i, nil
	}
	code := Forbidden
	if _, _, unknown := runtime.ParseIsolation(name); unknown != nil || s.trusted {
		code = Invalid
	}
	return i, &Error{Code: code, Err: err}
}

// isolate sets the isolation of a sandbox. Only native ones have zygotes.
func isolate(o *runtime.Options, i settings.Isolation) {
	o.Isolation, o.OCI = i.Kind, i.OCI
	if i.Kind != runtime.IsolationNative {
		o.Launcher, o.Zygote = runtime.LauncherExec, runtime.ZygoteOptions{}
	}
}

// isolateByDefault sets the server's default isolation.
func (s *Service) isolateByDefault(o *runtime.Options) {
	isolate(o, s.settings.Load().AllIsolations()[0])
}
