package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
)

// ErrIntegrity is the error of a build for a download that does not have the expected hash.
var ErrIntegrity = download.ErrIntegrity

// BuildOptions describe the image to build. The zero value is the default image.
type BuildOptions struct {
	// NodeVersion is a version of Node, or its first numbers ("22", "24.21") for the
	// newest such release in the registry. Empty: DefaultNode, whose hash gaol knows.
	NodeVersion string

	// Minimal leaves out the Debian packages: bash, git, curl and the others. The
	// shell is busybox's, and libraries, time zones and CA certificates are copied
	// from the host. Building such an image does not need apt.
	Minimal bool

	// With adds Debian packages with their dependencies: names of packages in the sources of this machine's
	// apt, and of [debian.Presets]. At most 100. It cannot be combined with Minimal. No maintainer script is
	// run; see package debian.
	With []string

	// Name is an additional name for the image, which another image with that name loses.
	// It consists of lower-case letters, digits and, not at its start, ._- characters.
	// Every image also gets a name that identifies its inputs, "node-" and the major
	// version, and "default" if the version is DefaultNode. With Minimal or With, the
	// latter two are like "node-24-minimal" and "minimal", or "node-24-ffmpeg_python" and
	// "ffmpeg_python". For values of With that are longer than 60 bytes together, or have a
	// "+", those end in "with-" and a hash.
	Name string

	// IfMissing makes Build return the image that it has built from these options before, if
	// the store still has it. The image gets its lost names back, also from
	// another image.
	IfMissing bool

	// Progress receives a line for each slow step, and for each download with its size. Nil:
	// progress is discarded.
	Progress io.Writer
}

// StepError is the error of a build or an import: the step that failed, and the cause.
type StepError struct {
	Op   string // "build image", or "import" and the source
	Step string // such as "unpack node"
	Err  error
}

// Error names the operation, the step and the cause.
func (e *StepError) Error() string { return e.Op + ": " + e.Step + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// step is a step of a build or an import.
type step[T any] struct {
	name string
	run  func(T, context.Context) error
}

// runSteps runs the steps of an operation until one fails.
func runSteps[T any](ctx context.Context, op string, steps []step[T], of T) error {
	for _, s := range steps {
		if err := s.run(of, ctx); err != nil {
			return &StepError{op, s.name, err}
		}
	}
	return nil
}

const buildImage = "build image"

// Build makes an image and stores it. If the store already contains an image with the
// same content, Build returns that image, with the new names. A build that fails or is killed
// leaves no image behind, except one without a name if setting the names fails.
//
// An error is a [*StepError]. Its cause can be a [*MissingError], or ErrIntegrity for a
// download with the wrong hash.
func (s *Store) Build(ctx context.Context, o BuildOptions) (*Image, error) {
	if o.IfMissing {
		if p, err := s.in.plan(o, s.in.pins.Find); err == nil {
			if i, err := s.restore(ctx, p, o.Progress); !errors.Is(err, ErrNotFound) {
				return i, err
			}
		}
	}
	return s.build(ctx, o)
}

// Ensure returns the image for ref. If ref is empty, it returns the image that o describes,
// and builds it if the store lacks it, unless Open was given a folder that does not exist.
// With o's zero value that is the default image. For an existing image this takes less than
// a millisecond, and no network access unless NodeVersion names a release that gaol does
// not know. The names of an existing image do not change.
func (s *Store) Ensure(ctx context.Context, ref string, o BuildOptions) (*Image, error) {
	if ref != "" {
		return s.Lookup(ref)
	}
	if i, err := s.Stored(o); !errors.Is(err, ErrNotFound) || errors.Is(err, ErrNoStore) {
		return i, err
	}
	o.IfMissing = true
	return s.build(ctx, o)
}

// Stored returns the image that Ensure returns without a build. The error is ErrNotFound if Ensure
// would build it, or ask a registry for the release of Node.
func (s *Store) Stored(o BuildOptions) (*Image, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	p, err := s.in.plan(o, s.in.pins.Find)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return s.stored(p)
}

// stored returns the image of the plan.
func (s *Store) stored(p plan) (*Image, error) {
	i, err := s.byName(p.names[0])
	if err == nil && i.Imported != nil { // an import was given the name
		return nil, ErrNotFound
	}
	return i, err
}

// restore returns the image of the plan, with all its names.
func (s *Store) restore(ctx context.Context, p plan, progress io.Writer) (*Image, error) {
	i, err := s.stored(p)
	if err != nil {
		return nil, err
	}
	for _, name := range p.names {
		if slices.Contains(i.Names, name) {
			continue
		}
		if i, _, err = s.Tag(ctx, i.ID, name); err != nil {
			return nil, err
		}
		download.NewReporter(progress).Line("gave the existing image the name %s", name)
	}
	return i, nil
}

// build is a build, an import or another addition to the store in progress.
type build struct {
	store  *Store
	plan   plan
	temp   *tempDir
	tree   *layer.Tree
	limits layer.Limits
	npm    *npmClient
	report *download.Reporter
	image  Image // the result
}

// build is Build, without the check for an existing image that needs neither the host's programs nor a
// registry.
func (s *Store) build(ctx context.Context, o BuildOptions) (_ *Image, err error) {
	b := &build{store: s, report: download.NewReporter(o.Progress)}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.prepare(ctx, o); err != nil {
		return nil, &StepError{buildImage, "prepare", err}
	}
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	// Builds of the same image run one after the other, because together they would only
	// take longer. Correctness does not depend on this lock.
	turn, err := lockWait(ctx, filepath.Join(s.locks(), b.plan.names[0]))
	if err != nil {
		return nil, &StepError{buildImage, "wait for another build", err}
	}
	defer turn.Close()
	if o.IfMissing {
		if i, err := s.restore(ctx, b.plan, o.Progress); !errors.Is(err, ErrNotFound) {
			return i, err
		}
		b.report.Line("the image is missing: build it (downloads of some 100 MB are kept in %s)", s.downloads())
	}
	if err := runSteps(ctx, buildImage, buildSteps, b); err != nil {
		return nil, err
	}
	return &b.image, nil
}

// prepare checks everything that depends on the host or the options, before anything large
// is downloaded.
func (b *build) prepare(ctx context.Context, o BuildOptions) error {
	if _, err := namesOf(o.Name); err != nil {
		return err
	}
	in := &b.store.in
	err := in.checkHost(&o)
	if err != nil {
		return err
	}
	if b.npm, err = newNPMClient(in); err != nil {
		return err
	}
	b.plan, err = in.plan(o, func(name, version string) (npmPackage, error) { return b.npm.Resolve(ctx, name, version) })
	b.image.Node, b.image.NPM = b.plan.node.Version, b.plan.npm.Version
	return err
}

// close closes the connections and files of the build, and removes its temporary folder.
func (b *build) close() error {
	if b.npm != nil {
		b.npm.Close()
	}
	if b.tree != nil {
		_ = b.tree.Close()
	}
	if b.temp != nil {
		return b.temp.Close()
	}
	return nil
}

// mountPoints lists the folders that the jail mounts at, or that belong to the guest in
// every tree. An imported image gets them and otherwise keeps its layout.
var mountPoints = []string{"/proc", "/dev", "/tmp", "/var/tmp", "/workspace", "/home/node"}

// folders lists the folders that no file creates. The first line are mount points of the
// jail.
var folders = []string{
	"/proc", "/dev", "/run", "/tmp", "/var/tmp", "/workspace", "/home/node",
	"/root", "/opt", "/etc", "/var/cache", "/var/lib", "/var/log",
	"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/libexec",
	"/usr/local/bin", "/usr/local/lib", "/usr/local/share",
}

// links lists the symbolic links that every image has.
var links = []struct{ path, target string }{
	{"/bin", "usr/bin"}, {"/sbin", "usr/sbin"}, {"/lib", "usr/lib"}, {"/lib64", "usr/lib64"}, // as on every current distribution
	{"/etc/localtime", "../usr/share/zoneinfo/Etc/UTC"},
}

// texts lists the files that come from neither the host nor a package. The guest's user is
// node, as in the official Docker images of Node. The accounts of root and "nobody" are of no
// use to a guest.
var texts = []struct{ path, content string }{
	{"/etc/passwd", `root:x:0:0:root:/root:/bin/sh
node:x:1000:1000:node:/home/node:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
`},
	{"/etc/group", `root:x:0:
node:x:1000:
nogroup:x:65534:
`},
	{"/etc/hosts", `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
`},
	{"/etc/nsswitch.conf", `passwd: files
group: files
hosts: files dns
`},
	{"/etc/resolv.conf", ""}, // a jail without a network; another file is mounted over it otherwise
	{"/etc/os-release", `NAME="gaol image"
PRETTY_NAME="gaol image"
ID=gaol
VERSION_ID=` + builder + `
`},
	{"/etc/timezone", "Etc/UTC\n"},
}
