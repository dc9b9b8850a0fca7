package flags

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/vfs"
)

// Step holds the flags of commands that build an image.
type Step struct{ Sandbox }

// NewStep defines the flags for cmd.
func NewStep(cmd *cobra.Command) *Step {
	s := &Step{NewSandbox(cmd, "")}
	s.options.Limits, s.timeout = runtime.StepLimits(), runtime.DefaultStepTimeout
	s.options.Cwd = string(vfs.Workspace) // of presets
	s.permissions.add(cmd, &s.options)
	s.AddTimeout("limit of the time of a command; 0 for none")
	s.AddLimits()
	return s
}

// ParseStep parses flags such as --preset=npm before a command of a Gaolfile.
func ParseStep(ctx context.Context, words []string) (rootfs.Runner, error) {
	cmd := &cobra.Command{}
	s := NewStep(cmd)
	if err := cmd.ParseFlags(words); err != nil {
		return nil, err
	}
	if more := cmd.Flags().Args(); len(more) > 0 {
		return nil, fmt.Errorf("%q: want --flag=value", more[0])
	}
	return s.Runner(ctx)
}

// Runner returns the runner of commands with these flags.
func (s *Step) Runner(ctx context.Context) (rootfs.Runner, error) {
	if err := s.Check(ctx); err != nil {
		return nil, err
	}
	return runtime.StepRunner{Options: s.Options(), Timeout: s.Timeout()}, nil
}
