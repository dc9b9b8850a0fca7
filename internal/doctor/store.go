package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/rootfs"
)

// buildSpace is the temporary space that building an image needs: the downloads, the tree,
// and a copy of both.
const buildSpace = 600_000_000

func probeStore(x *examination) Check {
	place := nearestExisting(x.store)
	if err := unix.Access(place, unix.W_OK|unix.X_OK); err != nil {
		return x.withoutBuild(fmt.Sprintf("%s can't be written: %v", place, err), "run gaol as root, or choose a folder with --store")
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(place, &fs); err != nil {
		return missing(fmt.Sprintf("%s: statfs: %v", place, err), "choose a folder with --store")
	}
	free := fs.Bavail * uint64(fs.Bsize)
	detail := fmt.Sprintf("%s, %d MB free", x.store, free/1e6)
	if free < buildSpace {
		return degraded(detail, fmt.Sprintf("free %d MB for building an image, or choose another disk with --store", buildSpace/1_000_000))
	}
	return ok(detail)
}

// probeDisks makes a small disk for guests.
func probeDisks(x *examination) Check {
	if err := jail.CheckDisks(nearestExisting(x.store)); err != nil {
		return degraded(err.Error(), "apt-get install e2fsprogs; modprobe loop; in a container, give it /dev/loop-control and loop devices")
	}
	return ok("ext4 on loop devices")
}

// probeOwners maps the owners of an image's files, as a jail does.
func probeOwners(x *examination) Check {
	switch err := jail.CheckOwners(nearestExisting(x.store)); {
	case errors.Is(err, jail.ErrNoIDMap):
		return degraded("the files of images show as files of uid 65534, which few programs notice",
			"keep the images on ext4, XFS or Btrfs, with Linux 5.19 or later")
	case err != nil:
		return degraded(err.Error(), "fix the missing features above")
	}
	return ok("the files of images show as root's")
}

// nearestExisting returns dir, or the nearest folder above it that exists: that is where
// dir would be created.
func nearestExisting(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return dir
		}
		dir = filepath.Dir(dir) // ends at /, which exists
	}
}

// withoutBuild is the finding for a missing requirement of builds: runs work if the store has the image.
func (x *examination) withoutBuild(detail, cure string) Check {
	if x.image != nil {
		return degraded(detail, cure)
	}
	return missing(detail, cure)
}

// lookup finds the image that gaol run uses. Its name is not always default: an older gaol may have given that to
// its own image, or a user to another one.
func lookup(dir string) (*rootfs.Image, error) {
	store, err := rootfs.Open(dir)
	if err != nil {
		return nil, err
	}
	return store.Stored(rootfs.BuildOptions{})
}

func probeImage(x *examination) Check {
	switch err := x.imageErr; {
	case errors.Is(err, rootfs.ErrNotFound), errors.Is(err, rootfs.ErrNoStore):
		return degraded("not built yet", "gaol image build (gaol run does it too)")
	case err != nil:
		return missing(err.Error(), "remove the folder of this file, then gaol image build")
	}
	return ok(fmt.Sprintf("Node %s, %d MB", x.image.Node, x.image.Size/1e6))
}

func probeTools(x *examination) Check {
	err := rootfs.CheckHost()
	if err == nil {
		return ok("all installed")
	}
	cure := "build one and read its errors: gaol image build"
	if m, isMissing := errors.AsType[*rootfs.MissingError](err); isMissing {
		cure = "apt-get install " + strings.Join(m.Packages, " ")
	} else if errors.Is(err, rootfs.ErrNoApt) {
		cure = "gaol image build --minimal, and gaol run --image minimal"
	}
	return x.withoutBuild(err.Error(), cure)
}

// sampleBytes of each image are read, which takes some 10 ms. That of all other files,
// names, modes and times are compared.
const sampleBytes = 4 << 20

// probeImageFiles looks for changes of the images' files: other programs that run as root,
// such as OCI runtimes, can write to them by mistake.
func probeImageFiles(x *examination) Check {
	store, err := rootfs.Open(x.options.Store)
	if err != nil {
		return missing(err.Error(), "choose a folder with --store")
	}
	images, err := store.List()
	if err != nil && !errors.Is(err, rootfs.ErrNoStore) {
		return missing(err.Error(), "choose a folder with --store")
	}
	compared := 0
	for _, i := range images {
		found, err := i.Verify(x.ctx, rootfs.VerifyOptions{Sample: sampleBytes})
		switch {
		case errors.Is(err, rootfs.ErrNotFound): // removed since it was listed
		case err != nil || len(found) > 0:
			return changed(i, found, err)
		default:
			compared++
		}
	}
	return ok(fmt.Sprintf("samples of %d images are unchanged", compared))
}

// digits is how much of an id's digits distinguishes images.
const digits = 12

// changed is the finding for an image that differs from its id, or can't be compared. Its
// cure removes the image by its id: by a name, an image with several names would stay, and a build
// would find it in the store.
func changed(i *rootfs.Image, found []rootfs.Difference, err error) Check {
	name := append(slices.Clone(i.Names), i.ID)[0]
	detail := fmt.Sprintf("%s: %v", name, err)
	if err == nil {
		detail = fmt.Sprintf("%s: %d differences, first %q (%s)", name, len(found), found[0].Path, found[0].Change)
	}
	again := "gaol image build"
	if i.Imported != nil {
		again = "gaol image import"
	}
	id := strings.TrimPrefix(i.ID, "sha256:")
	return degraded(detail, fmt.Sprintf("gaol image verify lists the differences; gaol image rm %.*s, and then %s, replaces the image", digits, id, again))
}
