package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// BuildOptions says what image to make. The zero value is the default image.
type BuildOptions struct {
	// NodeVersion is a version of Node, or the beginning of one ("22",
	// "24.21"), which means the newest such release that the registry has.
	// Empty: DefaultNode, whose hash is known to gaol itself.
	NodeVersion string

	// Minimal leaves out the Debian packages: bash, git, curl and the others. The
	// shell is busybox's, and libraries, time zones and CA certificates are copied
	// from the host. Such an image can be built without apt.
	Minimal bool

	// With names optional programs to add: "python3". Not with Minimal.
	With []string

	// Name is one more name for the image, taken from another image that has it.
	// Lower-case letters, digits and ._- inside it. Every image gets one that
	// identifies its inputs, "node-" and the major version, and "default" if the
	// version is DefaultNode. With Minimal or With, the latter two are like
	// "node-24-minimal" and "minimal", or "node-24-python3" and "python3".
	Name string

	// Progress gets a line for each thing that takes time, and a moving bar for
	// downloads when it is an *os.File that is a terminal. Nil: nothing.
	Progress io.Writer
}

// StepError is a build that failed: in which step, and why.
type StepError struct {
	Step string // such as "unpack node"
	Err  error
}

// Error names the step and the cause.
func (e *StepError) Error() string { return "build image: " + e.Step + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// Build makes an image and stores it. Where the store has one of the very same
// content, that one is returned, with the new names. A build that fails, or is
// killed, leaves no image and no name behind.
//
// An error is a [*StepError]. Among its causes are a [*MissingError], and
// ErrIntegrity for a download that is not what it should be.
func (s *Store) Build(ctx context.Context, o BuildOptions) (*Image, error) {
	return s.build(ctx, o, alwaysBuild)
}

// Ensure returns the image that ref means. An empty ref is the one that o
// describes, and is built if the store lacks it: with o's zero value the
// default image, but not where Open was given a folder that does not exist. That takes less than a millisecond if the image is there, and
// no look at the network unless NodeVersion names a release unknown to gaol.
func (s *Store) Ensure(ctx context.Context, ref string, o BuildOptions) (*Image, error) {
	if ref != "" {
		return s.Lookup(ref)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if p, known, err := s.in.knownPlan(o); err == nil && known {
		i, err := s.stored(p)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return i, err
		}
	}
	return s.build(ctx, o, unlessStored)
}

// When a build that would make what is there already is done all the same.
type demand int

const (
	alwaysBuild demand = iota
	unlessStored
)

// stored returns the image of the plan if it's there under all its names, for
// an extra name must be set too.
func (s *Store) stored(p plan) (*Image, error) {
	i, err := s.byName(p.names[0])
	if err != nil {
		return nil, err
	}
	if i.Imported != nil {
		return nil, ErrNotFound // somebody gave it a name that is not for such ones
	}
	if p.extra != "" {
		if digits, err := s.named(p.extra); err != nil || idPrefix+digits != i.ID {
			return nil, errors.Join(err, ErrNotFound)
		}
	}
	return i, nil
}

// build is one build in progress.
type build struct {
	store   *Store
	plan    plan
	scratch *scratch
	tree    *tree
	fetch   *fetcher
	report  *reporter
	debs    []Package // that the tree has files of
}

func (s *Store) build(ctx context.Context, o BuildOptions, d demand) (*Image, error) {
	b := &build{store: s, report: newReporter(o.Progress)}
	defer b.close()
	if err := b.prepare(ctx, o); err != nil {
		return nil, &StepError{"prepare", err}
	}
	if err := s.make(); err != nil {
		return nil, err
	}
	// Two builds of one thing go one after the other, for two at a time would
	// only take longer. Were they to run at once, all would still be well.
	turn, err := lockWait(ctx, filepath.Join(s.locks(), b.plan.names[0]))
	if err != nil {
		return nil, &StepError{"wait for another build", err}
	}
	defer turn.Close()
	if d == unlessStored {
		if i, err := s.stored(b.plan); err == nil || !errors.Is(err, ErrNotFound) {
			return i, err
		}
	}
	return b.run(ctx)
}

// close ends what prepare began.
func (b *build) close() {
	if b.fetch != nil {
		b.fetch.Close()
	}
}

// prepare finds out all that can fail for reasons of the host or of the
// options, before anything big is fetched.
func (b *build) prepare(ctx context.Context, o BuildOptions) error {
	if o.Name != "" {
		if err := CheckName(o.Name); err != nil {
			return err
		}
	}
	err := b.store.in.checkHost(o)
	if err != nil {
		return err
	}
	if b.fetch, err = b.store.in.fetcher(); err != nil {
		return err
	}
	b.plan, err = b.store.in.resolve(ctx, b.fetch, o)
	return err
}

// run builds in a folder of its own, which becomes the image or goes away.
func (b *build) run(ctx context.Context) (i *Image, err error) {
	if b.scratch, err = b.store.scratch(ctx); err != nil {
		return nil, &StepError{"make a folder", err}
	}
	defer func() { err = errors.Join(err, b.scratch.Close()) }()
	dir := b.scratch.path("image")
	if err := b.fill(ctx, dir); err != nil {
		return nil, err
	}
	i = &Image{
		Node:    b.plan.node.Version,
		NPM:     b.plan.npm.Version,
		Arch:    b.store.in.arch,
		Created: time.Now().UTC().Truncate(time.Second),

		Packages: b.debs,
	}
	if i.ID, i.Size, err = seal(filepath.Join(dir, imageRoot)); err == nil {
		i.ID, err = mixID(i.ID, i.Packages)
	}
	if err != nil {
		return nil, &StepError{"seal", err}
	}
	if i, err = b.store.commit(ctx, dir, i, b.plan.names); err != nil {
		return nil, &StepError{"store", err}
	}
	b.report.line("stored %s (%.0f MB) as %s", i.ID, float64(i.Size)/1e6, i.Names[0])
	return i, nil
}

// fill makes the tree, step by step.
func (b *build) fill(ctx context.Context, dir string) (err error) {
	if b.tree, err = newImageTree(dir); err != nil {
		return &StepError{"make a folder", err}
	}
	defer func() { err = errors.Join(err, b.tree.Close()) }()
	for _, s := range steps {
		if err := s.run(b, ctx); err != nil {
			return &StepError{s.name, err}
		}
	}
	return nil
}

// resolve turns the options into a plan, with the registry's help where gaol
// does not know the release.
func (in *inputs) resolve(ctx context.Context, f *fetcher, o BuildOptions) (plan, error) {
	if p, known, err := in.knownPlan(o); known || err != nil {
		return p, err
	}
	version, err := parseVersion(o.NodeVersion)
	if err != nil {
		return plan{}, err
	}
	name, err := in.nodePackage()
	if err != nil {
		return plan{}, err
	}
	node, err := f.resolve(ctx, in, name, version)
	if err != nil {
		return plan{}, err
	}
	npm, err := f.resolve(ctx, in, "npm", in.npm)
	if err != nil {
		return plan{}, err
	}
	return in.plan(node, npm, o)
}

// knownPlan is the plan where no registry has to be asked for it.
func (in *inputs) knownPlan(o BuildOptions) (p plan, known bool, err error) {
	version := in.node
	if o.NodeVersion != "" {
		if version, err = parseVersion(o.NodeVersion); err != nil {
			return plan{}, false, err
		}
	}
	name, err := in.nodePackage()
	if err != nil {
		return plan{}, false, err
	}
	node, known, err := in.pin(name, version)
	if !known || err != nil {
		return plan{}, false, err
	}
	npm, known, err := in.pin("npm", in.npm)
	if !known || err != nil {
		return plan{}, false, fmt.Errorf("npm %s has no pin: %w", in.npm, err)
	}
	p, err = in.plan(node, npm, o)
	return p, err == nil, err
}
