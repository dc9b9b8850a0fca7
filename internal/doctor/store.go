package doctor

import (
	"cmp"
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

// withStore makes a probe of a function that checks the folder of the store.
func withStore(run func(x *examination, dir string) Check) func(*examination) Check {
	return func(x *examination) Check {
		dir, err := filepath.Abs(cmp.Or(x.options.Store, rootfs.DefaultDir))
		if err != nil {
			return missing(err.Error(), "choose a folder with --store")
		}
		return run(x, dir)
	}
}

func probeStore(_ *examination, dir string) Check {
	place := nearestExisting(dir)
	if err := unix.Access(place, unix.W_OK|unix.X_OK); err != nil {
		return missing(fmt.Sprintf("%s can't be written: %v", place, err), "run gaol as root, or choose a folder with --store")
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(place, &fs); err != nil {
		return missing(fmt.Sprintf("%s: statfs: %v", place, err), "choose a folder with --store")
	}
	free := fs.Bavail * uint64(fs.Bsize)
	detail := fmt.Sprintf("%s, %d MB free", dir, free/1e6)
	if free < buildSpace {
		return degraded(detail, fmt.Sprintf("free %d MB for building an image, or choose another disk with --store", buildSpace/1_000_000))
	}
	return ok(detail)
}

// probeOwners maps the owners of an image's files, as a jail does.
func probeOwners(_ *examination, dir string) Check {
	switch err := jail.CheckOwners(nearestExisting(dir)); {
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

func probeImage(x *examination, dir string) Check {
	const cure = "gaol image build (gaol run does it too)"
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return degraded("none: the store is empty", cure) // rootfs.Open would create it
	}
	store, err := rootfs.Open(dir)
	if err != nil {
		return missing(err.Error(), "run gaol as root, or choose a folder with --store")
	}
	image, err := store.Lookup("default")
	switch {
	case errors.Is(err, rootfs.ErrNotFound):
		return degraded("not built yet", cure)
	case err != nil:
		return missing(err.Error(), "gaol image rm default && gaol image build")
	}
	x.hasImage = true
	return ok(fmt.Sprintf("Node %s, %d MB", image.Node, image.Size/1e6))
}

func probeTools(x *examination) Check {
	err := rootfs.CheckHost()
	if err == nil {
		return ok("all installed")
	}
	cure := "build one and read its errors: gaol image build"
	if m, isMissing := errors.AsType[*rootfs.MissingError](err); isMissing {
		cure = "apt-get install " + strings.Join(m.Packages, " ")
	}
	if x.hasImage {
		return degraded(err.Error(), cure) // the existing image can run
	}
	return missing(err.Error(), cure)
}

// probeJail runs a program in the native isolation.
func probeJail(x *examination) Check {
	cure := "run gaol as root: sudo gaol doctor"
	if x.root {
		cure = "fix the missing features above; if there are none, this is a bug of gaol"
	}
	return x.run("native", cure)
}

// withOCI returns a probe that runs a program in a container of an OCI runtime. The other checks are about the
// native isolation, which needs none: no result is a failure of the machine.
func withOCI(name string) func(*examination) Check {
	return func(x *examination) Check {
		c := x.run(name, "install or repair "+name+", or use another isolation")
		if c.Status != OK {
			c.Status = Optional
		}
		return c
	}
}

// run runs a program in an isolation.
func (x *examination) run(isolation, cure string) Check {
	switch {
	case x.options.Program == nil:
		return degraded("not tried", "run gaol doctor")
	case !x.hasImage:
		return degraded("not tried: there is no image to run it in", "gaol image build, then gaol doctor again")
	}
	detail, err := x.options.Program(x.ctx, isolation)
	if err != nil {
		return missing(strings.TrimPrefix(err.Error(), "gaol: "), cure)
	}
	return ok(detail)
}

// sampleBytes of each image are read, which takes some 10 ms. That of all other files,
// names, modes and times are compared.
const sampleBytes = 4 << 20

// probeImageFiles looks for changes of the images' files: other programs that run as root,
// such as OCI runtimes, can write to them by mistake.
func probeImageFiles(x *examination, dir string) Check {
	store, err := rootfs.Open(dir)
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
