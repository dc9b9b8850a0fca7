package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"gaol/rootfs/layer"
	"gaol/rootfs/oci"
)

// Causes of an [*ImportError], to be matched with errors.Is.
var (
	ErrDigest       = oci.ErrDigest       // content is not what its digest says
	ErrTruncated    = oci.ErrTruncated    // content ends too early
	ErrPlatform     = oci.ErrPlatform     // the image is for other machines
	ErrUnauthorized = oci.ErrUnauthorized // the registry wants credentials, or other ones
	ErrNoImage      = oci.ErrNoImage      // the source has no such image
	ErrMalformed    = oci.ErrMalformed    // the image's parts do not fit each other
	ErrInsecure     = oci.ErrInsecure     // plain http to another host
	ErrRefused      = layer.ErrRefused    // a layer says what no honest one does
	ErrTooLarge     = layer.ErrTooLarge   // more than ImportOptions.Limits
)

// ImportOptions say what to make of an image of others. The zero value imports the
// one for this machine, without a name.
type ImportOptions struct {
	// Name is a name for the image, taken from another image that has it. Lower-case
	// letters, digits and ._- inside it. Empty: it is found by its id alone.
	Name string

	// Platform is which one of an image for several to take, such as "linux/amd64".
	// This machine must be able to run it. Empty: this machine's.
	Platform string

	// Limits bound what the image may hold.
	Limits layer.Limits

	// Keychain finds the credentials for a registry. Nil: where `docker login` puts them.
	Keychain authn.Keychain

	// TrustNode lets the image's Node run outside of jails, with root's rights, as
	// the zygote that forked runs come from. A malicious image has the whole host
	// with it. Without it the image's programs run in jails and nowhere else.
	TrustNode bool

	// Progress gets a line for each thing that takes time, and a moving bar for
	// downloads when it is an *os.File that is a terminal. Nil: nothing.
	Progress io.Writer
}

// ImportError is an import that failed: of what, in which step, and why.
type ImportError struct {
	Source string
	Step   string // such as "lay layer 2/5"
	Err    error
}

// Error names the source, the step and the cause.
func (e *ImportError) Error() string {
	return fmt.Sprintf("import %s: %s: %s", e.Source, e.Step, e.Err)
}

// Unwrap returns the cause.
func (e *ImportError) Unwrap() error { return e.Err }

// Import makes an image of what somebody else made: an image of a registry
// ("registry.example/app:1", or with "docker://" before it), an OCI layout (a folder
// or a tar), what `docker save` wrote, a root file system (a folder or a tar). Archives
// may be compressed with gzip or zstd. A source is a path if there is something.
//
// The image's files become root's, readable by everyone; devices, set-id bits and
// extended attributes are left out. What starts a jail is gaol's own: it takes the
// place of whatever the image has there, and so do the folders that every guest has.
// An import that fails leaves nothing behind. One that is killed does so too, once the
// store is written to again, but in its last moment: then the image may be there without
// its name, which is what [Store.Prune] removes.
//
// An error is an [*ImportError].
func (s *Store) Import(ctx context.Context, source string, o ImportOptions) (*Image, error) {
	m := &importer{build: build{store: s, report: newReporter(o.Progress)}, options: o, name: source}
	i, err := m.run(ctx)
	if err != nil {
		return nil, err
	}
	m.report.line("stored %s (%.0f MB) %s", i.ID, float64(i.Size)/1e6, strings.Join(i.Names, " "))
	return i, nil
}

// importer is one import in progress. It is a build whose tree comes from elsewhere.
type importer struct {
	build
	options ImportOptions
	name    string     // of the source
	source  *oci.Image // what is there
	blobs   []string   // of the store, or to become so
	image   Image      // what it becomes
}

// importSteps make an image of a source. All but the last write to the import's own
// folder alone.
var importSteps = []struct {
	name string
	run  func(*importer, context.Context) error
}{
	{"prepare", (*importer).prepare},
	{"open", (*importer).open},
	{"unpack", (*importer).lay},
	{"furnish", (*importer).furnish},
	{"seal", (*importer).seal},
	{"store", (*importer).commit},
}

func (m *importer) run(ctx context.Context) (_ *Image, err error) {
	defer func() {
		if m.source != nil {
			err = errors.Join(err, m.source.Close())
		}
		if m.scratch != nil {
			err = errors.Join(err, m.scratch.Close())
		}
	}()
	for _, step := range importSteps {
		if err := step.run(m, ctx); err != nil {
			return nil, &ImportError{m.name, step.name, err}
		}
	}
	return &m.image, nil
}

// prepare finds out what can fail for reasons of the host or of the options.
func (m *importer) prepare(ctx context.Context) (err error) {
	if m.options.Name != "" {
		if err := CheckName(m.options.Name); err != nil {
			return err
		}
	}
	if m.options.Limits.Bytes < 0 || m.options.Limits.Entries < 0 {
		return fmt.Errorf("limits %+v: less than nothing", m.options.Limits)
	}
	if m.options.Platform == "" {
		m.options.Platform = "linux/" + goruntime.GOARCH
	}
	// Variants, such as arm64/v8, are the machine's to run or not.
	if own := "linux/" + goruntime.GOARCH; m.options.Platform != own && !strings.HasPrefix(m.options.Platform, own+"/") {
		return fmt.Errorf("platform %q: this machine runs %s: %w", m.options.Platform, own, ErrUnsupported)
	}
	if err := missing(m.store.in.starters()); err != nil {
		return err
	}
	m.scratch, err = m.store.scratch(ctx)
	return err
}

func (m *importer) maxBytes() int64 {
	if m.options.Limits.Bytes > 0 {
		return m.options.Limits.Bytes
	}
	return layer.DefaultBytes
}

func (m *importer) open(ctx context.Context) (err error) {
	m.report.line("open %s", m.name)
	m.source, err = oci.Open(ctx, m.name, oci.Options{
		Platform: m.options.Platform,
		Keychain: m.options.Keychain,
		Temp:     func() (*os.File, error) { return os.Create(m.scratch.path("archive")) },
		MaxTemp:  m.maxBytes(),
		Stall:    m.store.in.stall,
	})
	if err != nil {
		return err
	}
	var total int64
	for _, l := range m.source.Layers {
		if l.Size > m.maxBytes()-total {
			return fmt.Errorf("layers: %w of %d bytes", ErrTooLarge, m.maxBytes())
		}
		total += l.Size
	}
	return nil
}

// lay makes the tree of the layers, or of the folder.
func (m *importer) lay(ctx context.Context) (err error) {
	if m.tree, err = newImageTree(m.scratch.path("image")); err != nil {
		return err
	}
	if err := m.tree.Close(); err != nil { // it is opened anew when the layers are there
		return err
	}
	t, err := layer.Open(m.root(), m.options.Limits)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if m.source.Kind == "folder" {
		store, err := os.Stat(m.store.dir)
		if err != nil {
			return err
		}
		m.report.line("copy %s", m.source.Folder)
		err = t.Copy(ctx, m.source.Folder, store)
		if err != nil {
			return err
		}
	}
	for n := range m.source.Layers {
		label := fmt.Sprintf("layer %d/%d", n+1, len(m.source.Layers))
		if err := m.layLayer(ctx, t, &m.source.Layers[n], label); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	if t.Dropped > 0 {
		m.report.line("left out %d devices, pipes and sockets", t.Dropped)
	}
	return nil
}

func (m *importer) root() string { return filepath.Join(m.scratch.path("image"), imageRoot) }

func (m *importer) layLayer(ctx context.Context, t *layer.Tree, l *oci.Layer, label string) (err error) {
	blob, err := m.blob(ctx, l, label)
	if err != nil {
		return err
	}
	defer blob.Close()
	m.report.line("unpack %s", label)
	archive, err := l.Archive(blob)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	if err := t.Apply(ctx, archive); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrTruncated) {
			err = fmt.Errorf("%w: %w", ErrTruncated, err)
		}
		return err
	}
	return archive.Verify()
}

// seal fixes the tree, and with it the id. What an image would have of who starts it
// is no part of the tree: two of one tree that differ there are two images.
func (m *importer) seal(context.Context) (err error) {
	i := &m.image
	if i.ID, i.Size, err = seal(m.root()); err != nil {
		return err
	}
	i.Arch, i.Created = m.store.in.arch, time.Now().UTC().Truncate(time.Second)
	i.Imported.Blobs = m.blobs
	i.ID, err = mixID(i.ID, i.Imported.Config)
	return err
}

func (m *importer) commit(ctx context.Context) error {
	var names []string
	if m.options.Name != "" {
		names = []string{m.options.Name}
	}
	i, err := m.store.commitWith(ctx, m.scratch.path("image"), &m.image, names, m.storeBlobs)
	if err != nil {
		return err
	}
	m.image = *i
	return nil
}
