package doctor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gaol/rootfs"
)

const (
	// sampleBytes of each image are read, which takes some 10 ms. That of all other files,
	// names, modes and times are compared.
	sampleBytes = 4 << 20

	// enoughTime ends the comparison of images but for the default one, which is the first.
	enoughTime = 100 * time.Millisecond
)

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
	slices.SortStableFunc(images, func(a, b *rootfs.Image) int { return rank(a) - rank(b) })
	compared, older, start := 0, 0, time.Now()
	for _, i := range images {
		if compared > 0 && time.Since(start) > enoughTime {
			break
		}
		found, err := i.Verify(x.ctx, rootfs.VerifyOptions{Sample: sampleBytes})
		switch {
		case errors.Is(err, rootfs.ErrNotFound): // removed since it was listed
		case errors.Is(err, rootfs.ErrNoList):
			older++
		case errors.Is(err, os.ErrPermission) && !x.root:
			return degraded("can't be compared", "run gaol doctor as root")
		case err != nil || len(found) > 0:
			return changed(i, found, err)
		default:
			compared++
		}
	}
	return ok(summary(compared, older, len(images)))
}

// summary describes how many images are unchanged. Those of an older gaol have no list of
// their files, without which there is no quick comparison.
func summary(compared, older, all int) string {
	switch {
	case all == 0:
		return "there are no images"
	case older > 0:
		return fmt.Sprintf("a sample of %d of %d images is unchanged; gaol image verify compares older ones", compared, all)
	}
	return fmt.Sprintf("a sample of %d of %d images is unchanged", compared, all)
}

// rank sorts the default image before all others.
func rank(i *rootfs.Image) int {
	if slices.Contains(i.Names, "default") {
		return 0
	}
	return 1
}

// digits is how much of an id's digits distinguishes images.
const digits = 12

// changed is the finding for an image that differs from its id, or can't be compared. Its
// cure removes the image by its id: with a name, one that has others would stay, and a build
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
