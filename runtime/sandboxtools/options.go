package sandboxtools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"gaol/runtime"
)

// Options configure a [Toolbox]. The zero value allows 16 sandboxes with the defaults of
// package runtime, and shares no folder of the host.
type Options struct {
	// Create configures the runtime of each sandbox: limits, permissions, variables, store,
	// and the default image. Hostname and Cwd come from the calls and must be empty. A zero
	// Limits.Output is 1 MiB here, as models read the results.
	Create runtime.Options

	// Images lists the allowed values of imageName, in addition to the image of Create.
	// An entry is a name or id in the store, or a source that `gaol image import` accepts:
	// a reference that begins with a registry's host, such as registry.example/app:1, or
	// with docker://, or a path that begins with / or ./ of an OCI layout, a docker save
	// archive, or a tar or folder of a root file system. Callers must write an entry
	// exactly as it is listed. Nil allows the images in the store, and nothing else.
	//
	// Sources are imported on first use. From then on the store's copy is used, even if
	// the source changes, until it is removed by `gaol image rm`.
	//
	// Where the launcher of Create cannot start an image's Node, or the image has none,
	// LauncherExec is used: the tools run commands only.
	Images []string

	// ProjectBase is the absolute path of an existing folder on the host. A projectOutPath
	// must be below it. Empty: projectOutPath is refused.
	//
	// Only the file system limits what guests write there.
	ProjectBase string

	// MaxSandboxes is the maximum number of sandboxes at once. Zero: 16. Each may use as
	// much as Create.Limits allow.
	MaxSandboxes int

	// Prepare, if not nil, is called with the options of each sandbox before it is created, and
	// may change them. Its error refuses the sandbox with the code limit. release, if not nil,
	// is called when the sandbox is closed, or could not be created.
	Prepare func(*runtime.Options) (release func(), err error)

	// Start, if not nil, is called before each command with the limits of its sandbox. It may wait.
	// Its error refuses the command with the code limit. release, if not nil, is called when the
	// command has ended.
	Start func(context.Context, runtime.Limits) (release func(), err error)

	// IdleLimit is how long a sandbox lives without a call. The time starts again when a
	// call ends. Zero: 10 minutes.
	IdleLimit time.Duration
}

const (
	defaultMaxSandboxes = 16
	defaultIdleLimit    = 10 * time.Minute
	defaultOutput       = 1 << 20
)

// normalize validates the options and fills in the defaults.
func (o Options) normalize() (Options, error) {
	switch {
	case o.MaxSandboxes < 0:
		return o, fmt.Errorf("option MaxSandboxes: %d is negative", o.MaxSandboxes)
	case o.IdleLimit < 0:
		return o, fmt.Errorf("option IdleLimit: %v is negative", o.IdleLimit)
	case o.Create.Hostname != "" || o.Create.Cwd != "":
		return o, errors.New("option Create: Hostname and Cwd come from the calls")
	case o.ProjectBase != "" && !filepath.IsAbs(o.ProjectBase):
		return o, fmt.Errorf("option ProjectBase: %q is not an absolute path", o.ProjectBase)
	}
	o.MaxSandboxes = cmp.Or(o.MaxSandboxes, defaultMaxSandboxes)
	o.IdleLimit = cmp.Or(o.IdleLimit, defaultIdleLimit)
	o.Create.Limits.Output = cmp.Or(o.Create.Limits.Output, defaultOutput)
	o.Create.Mounts = slices.Clone(o.Create.Mounts)
	return o, nil
}
