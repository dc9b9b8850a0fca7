package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
	"gaol/rootfs/oci"
)

// Causes of the [*StepError] of an import, to be matched with errors.Is.
var (
	ErrDigest       = oci.ErrDigest       // content does not match its digest
	ErrTruncated    = oci.ErrTruncated    // content ends too early
	ErrPlatform     = oci.ErrPlatform     // the image is for other machines
	ErrUnauthorized = oci.ErrUnauthorized // the registry wants credentials, or other ones
	ErrNoImage      = oci.ErrNoImage      // not found in the source
	ErrMalformed    = oci.ErrMalformed    // the parts of the image contradict each other
	ErrInsecure     = oci.ErrInsecure     // plain http to another host
	ErrRefused      = layer.ErrRefused    // a layer contains an entry that is invalid in layers
	ErrTooLarge     = layer.ErrTooLarge   // more than ImportOptions.Limits
)

// ImportOptions configure an import of an image for this machine. The zero value imports it without a name.
type ImportOptions struct {
	// Name is a name for the image, which another image with that name loses. It consists
	// of lower-case letters, digits and, not at its start, ._- characters. Empty: the
	// image can be found by its id only.
	Name string

	// Limits bound the content of the image.
	Limits layer.Limits

	// Registry opens images in registries. Nil: only the host's files can be imported. Use
	// [gaol/rootfs/registry.Client], which most programs need not link.
	Registry oci.Registry

	// TrustNode lets the image's Node run outside of jails as root: as the zygote that
	// forked runs come from. A malicious image then controls the whole host. Without
	// TrustNode, the image's programs run only in jails.
	TrustNode bool

	// Progress receives a line for each slow step, and for each download with its size. Nil:
	// progress is discarded.
	Progress io.Writer
}

// Import makes an image from an existing one: an image of a registry
// ("registry.example/app:1", also with the prefix "docker://"; it needs
// [ImportOptions].Registry), an OCI layout (a folder
// or a tar), an archive of `docker save`, or a root file system (a folder or a tar). Archives
// may be compressed with gzip or zstd. If source is an existing path, it means that file or
// folder.
//
// The image's files become root's, readable by everyone. Devices, set-id bits and
// extended attributes are dropped. The programs that start a jail are gaol's own and
// replace any files of the image, as do the folders that every guest has.
// A failed import leaves nothing behind. A killed one leaves files that the next write to
// the store removes; if it ends in its last moment, it leaves the image without its
// name, which [Store.Prune] removes.
//
// An error is a [*StepError].
func (s *Store) Import(ctx context.Context, source string, o ImportOptions) (_ *Image, err error) {
	m := &importer{build: build{store: s, report: download.NewReporter(o.Progress)}, options: o, name: source}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := runSteps(ctx, "import "+source, importSteps, m); err != nil {
		return nil, err
	}
	return &m.image, nil
}

// importer is an import in progress. It uses some steps of a build.
type importer struct {
	build
	options ImportOptions
	name    string     // of the source
	source  *oci.Image // the image to import
}

// importSteps make an image from a source. All but the last one write only to the import's
// temporary folder.
var importSteps = []step[*importer]{
	{"prepare", (*importer).prepare},
	{"open", (*importer).open},
	{"unpack", (*importer).unpackLayers},
	{"furnish", (*importer).addJailFiles},
	{"seal", (*importer).seal},
	{"store", (*importer).commit},
}

func (m *importer) close() error {
	if m.source != nil {
		m.source.Close()
	}
	return m.build.close()
}

// prepare checks everything that depends on the host or the options.
func (m *importer) prepare(ctx context.Context) (err error) {
	if m.plan.names, err = namesOf(m.options.Name); err != nil {
		return err
	}
	if m.options.Limits.Bytes < 0 || m.options.Limits.Entries < 0 {
		return fmt.Errorf("limits %+v: negative", m.options.Limits)
	}
	m.limits = m.options.Limits.WithDefaults()
	if err := m.store.in.checkHost(nil); err != nil {
		return err
	}
	return m.makeTree(ctx)
}

// open opens the source, and checks the size of its layers before any is downloaded.
func (m *importer) open(ctx context.Context) (err error) {
	m.report.Line("open %s", m.name)
	m.source, err = oci.Open(ctx, m.name, oci.Options{
		Registry: m.options.Registry,
		Temp:     func() (*os.File, error) { return os.Create(m.temp.path("archive")) },
		MaxTemp:  m.limits.Bytes,
		Stall:    m.store.in.stall,
	})
	if err != nil {
		return err
	}
	left := m.limits.Bytes
	for _, l := range m.source.Layers {
		if l.Size > left {
			return fmt.Errorf("layers: %w of %d bytes", ErrTooLarge, m.limits.Bytes)
		}
		left -= l.Size
	}
	return nil
}

// unpackLayers makes the tree from the layers or from the folder.
func (m *importer) unpackLayers(ctx context.Context) error {
	if m.source.Kind == "folder" {
		store, err := os.Stat(m.store.dir)
		if err != nil {
			return err
		}
		m.report.Line("copy %s", m.source.Folder)
		if err := m.tree.Copy(ctx, m.source.Folder, store); err != nil {
			return err
		}
	}
	for n := range m.source.Layers {
		label := fmt.Sprintf("layer %d/%d", n+1, len(m.source.Layers))
		if err := m.unpackLayer(ctx, &m.source.Layers[n], label); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	if m.tree.Dropped > 0 {
		m.report.Line("left out %d devices, pipes and sockets", m.tree.Dropped)
	}
	return nil
}

func (m *importer) unpackLayer(ctx context.Context, l *oci.Layer, label string) error {
	blob, err := m.openBlob(ctx, l, label)
	if err != nil {
		return err
	}
	defer blob.Close()
	m.report.Line("unpack %s", label)
	archive, err := l.Archive(blob)
	if err != nil {
		return err
	}
	defer archive.Close()
	if err = m.tree.Apply(ctx, archive); errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", ErrTruncated, err)
	}
	return err
}

// openBlob opens a layer's blob after checking its digest. It downloads one of a registry into the
// import's temporary folder.
func (m *importer) openBlob(ctx context.Context, l *oci.Layer, label string) (io.ReadCloser, error) {
	if m.source.Kind != "registry" {
		if l.Digest.Hex != "" {
			if err := l.Receive(ctx, io.Discard); err != nil {
				return nil, err
			}
		}
		return l.Open(ctx)
	}
	f, err := os.Create(m.temp.path("layer"))
	if err != nil {
		return nil, err
	}
	m.report.Fetch(fmt.Sprintf("%s %.19s", label, l.Digest), l.Size)
	err = l.Receive(ctx, f)
	if err = errors.Join(err, download.Rewind(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
