package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gaol/jail/mounts"
	"gaol/rootfs/oci"
	"gaol/rootfs/tree"
)

const (
	idPrefix  = tree.IDPrefix
	imageFile = "image.json"
	imageRoot = "rootfs"
	imageList = "files" // the list of tree.Seal
	imageLock = "lock"
)

// Image describes a stored image as it was when it was read. Its tree can be removed at any
// time, unless the caller holds a lease from [Image.Hold].
type Image struct {
	ID      string    `json:"id"`              // "sha256:" and 64 hex digits, over the tree
	Names   []string  `json:"names,omitempty"` // sorted
	Node    string    `json:"node"`            // version of Node, such as "24.21.0"; "" for none
	NPM     string    `json:"npm"`             // version of the npm CLI; "" for an imported image
	Arch    string    `json:"arch"`            // as npm names it: "x64" or "arm64"
	Size    int64     `json:"size"`            // bytes of all files
	Created time.Time `json:"created"`         // when it was added to this store

	// Packages are the Debian packages that its files come from, sorted by name; nil
	// for a minimal or an imported image.
	Packages []Package `json:"packages,omitempty"`

	Imported *Imported `json:"imported,omitempty"` // nil for an image that gaol built

	dir  string
	kind *kind
}

// Root returns the host path of the image's tree, which must not be written to.
func (i *Image) Root() string { return filepath.Join(i.dir, imageRoot) }

// OpenFolder opens a folder of the image's tree with O_PATH, unless it is a link. Other links in
// the path, which a guest may have made, are resolved inside the tree.
func (i *Image) OpenFolder(path string) (*os.File, error) {
	root, err := os.OpenFile(i.Root(), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return mounts.OpenIn(root, path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
}

// StoreDir returns the folder of the image's store.
func (i *Image) StoreDir() string { return filepath.Dir(filepath.Dir(i.dir)) }

// mixID returns the image's id for the id of its tree. It also covers the list of packages, and
// the config of an imported image, so that images that differ only there are different images.
func (i *Image) mixID(treeID string) (string, error) {
	var more any = i.Packages
	if i.Imported != nil {
		more = i.Imported.Config
	}
	return tree.MixID(treeID, more)
}

// Lease prevents the removal of an image until it is closed or the process ends.
type Lease struct{ lock *os.File }

// Close releases the lease.
func (l *Lease) Close() error { return l.lock.Close() }

// Hold returns a lease of the image. The files below a mounted overlay must not be removed.
// An image can have any number of leases. Hold fails with ErrNotFound if the image has been
// removed or is being removed.
func (i *Image) Hold() (*Lease, error) {
	path := filepath.Join(i.dir, imageLock)
	lock, err := lockNow(path, os.O_RDONLY, unix.LOCK_SH)
	// A removal may have moved the folder between the open and the lock.
	if err == nil && !isAt(lock, path) {
		lock.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %s: %w", i.kind.name, i.ID, i.kind.notFound)
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s %s: %w", i.kind.name, i.ID, err)
	}
	return &Lease{lock}, nil
}

// isAt reports whether path still names the open file f.
func isAt(f *os.File, path string) bool {
	held, err := f.Stat()
	found, missing := os.Lstat(path)
	return err == nil && missing == nil && os.SameFile(held, found)
}

// load reads the image.json of the image with these hex digits. It does not set Names.
func (s *Store) load(digits string) (*Image, error) {
	i := &Image{dir: filepath.Join(s.images(), digits), kind: s.kind}
	file := filepath.Join(i.dir, imageFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, i); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return i, nil
}

// ImportedConfig is an imported image's own description of how to start it. It is recorded
// for users. gaol itself uses only PATH, see [Image.Path].
type ImportedConfig = oci.Config

// Imported describes an image that was imported.
type Imported struct {
	Source string         `json:"source"`           // as it was passed to Import
	Kind   string         `json:"kind"`             // "registry", "oci-layout", "docker-archive", "tar", "folder"
	Digest string         `json:"digest,omitempty"` // of its manifest
	Config ImportedConfig `json:"config"`

	// NodePath is the guest path of its Node, without links; "" without Node.
	NodePath string `json:"nodePath,omitempty"`

	// Libraries lists /lib and /lib64 unless they are links into /usr.
	Libraries []string `json:"libraries,omitempty"`

	// Libc is the C library of its Node: "glibc", "musl", "static", or "" without Node.
	Libc string `json:"libc,omitempty"`

	// Zygote is whether its Node can load the shared object that makes a zygote.
	Zygote bool `json:"zygote,omitempty"`

	// TrustNode is whether an import of this image set ImportOptions.TrustNode.
	TrustNode bool `json:"trustNode,omitempty"`

	// Base is the id of a trusted image, if a derived one has its Node: the same file at the same path.
	Base string `json:"base,omitempty"`
}

// CanRun returns nil if the image's Node can run programs. Otherwise the error wraps
// ErrUnsupported: Node is missing, or too old for gaol's guest code.
func (i *Image) CanRun() error {
	if i.Node == "" {
		return fmt.Errorf("the image lacks Node, only commands work in it: %w", ErrUnsupported)
	}
	major, _, _ := strings.Cut(i.Node, ".")
	if n, err := strconv.Atoi(major); err == nil && n < minNode {
		return fmt.Errorf("the image has Node %s, and runs need %d or newer: %w", i.Node, minNode, ErrUnsupported)
	}
	return nil
}

// CanFork returns nil if the image's Node may be the zygote, which runs outside all jails.
// Otherwise the error wraps ErrUnsupported and names the reason.
func (i *Image) CanFork() error {
	m := i.Imported
	switch {
	case m == nil:
		return nil
	case i.Node == "":
		return fmt.Errorf("the image lacks Node: %w", ErrUnsupported)
	case m.Libc != "glibc":
		return fmt.Errorf("the image's Node is linked to %s, and the zygote works with glibc: %w", m.Libc, ErrUnsupported)
	case !m.Zygote:
		return fmt.Errorf("the image's glibc is older than the zygote's: %w", ErrUnsupported)
	case !m.TrustNode:
		return fmt.Errorf("the image is not trusted to run outside of jails, as the zygote does (see ImportOptions.TrustNode): %w", ErrUnsupported)
	}
	return nil
}

// ZygoteImage returns the image whose Node can be the zygote of runs in this one: itself, or the base of a derived image with
// the same Node, whose processes enter the derived image's jail before they run code. The error is that of CanFork.
func (i *Image) ZygoteImage() (*Image, error) {
	untrusted := i.CanFork()
	if untrusted == nil || i.Imported.Base == "" {
		return i, untrusted
	}
	store, err := Open(i.StoreDir())
	if err != nil {
		return nil, err
	}
	base, err := store.get(strings.TrimPrefix(i.Imported.Base, idPrefix))
	if err != nil || base.CanFork() != nil {
		return nil, errors.Join(untrusted, err)
	}
	return base, nil
}

// maxPathVariable bounds PATH in bytes.
const maxPathVariable = 4096

// Path returns the PATH of an imported image's config. It returns "" unless that is a list
// of absolute, clean paths.
func (i *Image) Path() string {
	if i.Imported == nil {
		return ""
	}
	value := variable(i.Imported.Config.Env, "PATH")
	if value == "" || len(value) > maxPathVariable {
		return ""
	}
	for _, dir := range strings.Split(value, ":") {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return ""
		}
	}
	return value
}

// variable returns the last value of an environment variable, which overrides earlier ones.
func variable(env []string, name string) (value string) {
	for _, v := range env {
		if k, text, found := strings.Cut(v, "="); found && k == name {
			value = text
		}
	}
	return value
}

// Difference is a change of one file of a stored image.
type Difference = tree.Difference

// ErrRecord is the error of [Image.Verify] for an image whose description or list of files was
// changed or removed.
var ErrRecord = errors.New("its image.json or list of files was changed: together they do not have the hash that is its id")

// VerifyOptions are the options of Verify. The zero value reads all files.
type VerifyOptions struct {
	// Sample makes Verify fast: it reads about this many bytes of randomly chosen files, and
	// an image's files that have another modification time than it gave them. It compares
	// everything else of all files. Zero reads all files.
	Sample int64
}

// Verify compares the image's files with its id, and returns the changes in the order of a
// walk. It follows no links and does not compare times. An error means that it could not
// compare: it wraps ErrNotFound for an image that was removed, or ErrRecord.
func (i *Image) Verify(ctx context.Context, o VerifyOptions) ([]Difference, error) {
	lease, err := i.Hold()
	if err != nil {
		return nil, err
	}
	defer func() { _ = lease.Close() }()
	found, err := i.verify(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("verify %s %s: %w", i.kind.name, i.ID, err)
	}
	return found, nil
}

func (i *Image) verify(ctx context.Context, o VerifyOptions) ([]Difference, error) {
	info, err := os.Stat(filepath.Join(i.dir, imageFile))
	if err != nil {
		return nil, err
	}
	compare := tree.CompareOptions{UID: info.Sys().(*syscall.Stat_t).Uid}
	if o.Sample > 0 {
		compare.Reads = i.sample(o.Sample)
	}
	list, err := os.ReadFile(filepath.Join(i.dir, imageList))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !i.isOf(tree.ListID(list)) {
		return nil, ErrRecord
	}
	return tree.Compare(ctx, i.Root(), list, compare)
}

// isOf reports whether treeID gives the image's id. It compares with the name of the image's folder,
// too, because image.json may have been changed.
func (i *Image) isOf(treeID string) bool {
	id, err := i.mixID(treeID)
	return err == nil && id == idPrefix+filepath.Base(i.dir) && id == i.ID
}

// sample chooses files to read. Times show no changes in snapshots, which keep the
// times of the guest's files.
func (i *Image) sample(bytes int64) func(fs.FileInfo) bool {
	share := float64(bytes) / float64(max(i.Size, 1))
	left := bytes
	return func(info fs.FileInfo) bool {
		if i.kind == imageKind && !info.ModTime().Equal(tree.Epoch) {
			return true
		}
		if info.Size() > left || rand.Float64() >= share {
			return false
		}
		left -= info.Size()
		return true
	}
}
