package sandboxtools

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"gaol/runtime"
)

// Options say what a [Toolbox] lets its callers have. The zero value lets them make 16
// sandboxes with the runtime's defaults, and share no folder of the host's.
type Options struct {
	// Create is what sandboxes are made with: limits, permissions, variables, store, and
	// the image of those that name none. Hostname and Cwd come from the calls, and must be
	// empty. A zero Limits.Output is 1 MiB here, as results are for models to read.
	Create runtime.Options

	// Images are what imageName may be, besides that of Create, each as it stands here:
	// names and ids of the store, and what `gaol image import` takes. Those are references
	// that begin with a registry's host, registry.example/app:1, or with docker://, and
	// paths that begin with / or ./ of OCI layouts, docker save archives, and tars and
	// folders of a root file system. Nil: whatever is in the store, and nothing else.
	//
	// They are imported when they are first asked for, and taken from the store from then
	// on, whatever becomes of the source, until `gaol image rm`.
	//
	// Where the launcher of Create can't start the Node of such an image, or it has none,
	// LauncherExec does: the tools run commands only.
	Images []string

	// ProjectBase is the folder of the host's that those of projectOutPath are made or
	// found below: an absolute path, which must exist. Empty: there can be none.
	//
	// What guests write there nothing but the file system bounds.
	ProjectBase string

	// MaxSandboxes is how many there can be at once. Zero: 16. Each takes as much as
	// Create.Limits allow.
	MaxSandboxes int

	// IdleLimit is how long a sandbox lives without a call. A call under way keeps it
	// alive, and its end begins the time anew. Zero: 10 minutes.
	IdleLimit time.Duration
}

const (
	defaultMaxSandboxes = 16
	defaultIdleLimit    = 10 * time.Minute
	defaultOutput       = 1 << 20
)

// settle checks the options and fills in the defaults.
func (o Options) settle() (Options, error) {
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
	if o.MaxSandboxes == 0 {
		o.MaxSandboxes = defaultMaxSandboxes
	}
	if o.IdleLimit == 0 {
		o.IdleLimit = defaultIdleLimit
	}
	if o.Create.Limits.Output == 0 {
		o.Create.Limits.Output = defaultOutput
	}
	o.Images = slices.Clone(o.Images)
	o.Create.Mounts = slices.Clone(o.Create.Mounts)
	return o, nil
}
